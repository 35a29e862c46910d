"""Neighbours share what they know: graph terms for measurements at places along a line.

    python examples/plot_graph.py

Two noisy measurements at each of 200 places; some are gross errors.  The loss is the absolute error, alone
and with a graph term added: `Laplacian` (squared differences of neighbours), `TotalVariation` (absolute).
The only input is the place, the edges join neighbouring places, and `groups` names the place of each row.
The learner is "additive", all stumps at once, because single stumps come less close to the minimum of these
objectives in 500 rounds.  All models train on all rows for 500 rounds, because the rows of a graph cannot be
parted for validation.  The strength is the one of seven that predicts a third measurement at each place best;
the truth (black) is only used to measure the distances.

Look at the jumps, and at how much of the noise is left between them.
"""

from pathlib import Path

import numpy as np
from style import AMBER, GREY, INK, TEAL, figure, finish, label, run

from convexboost import ConvexBoostRegressor
from convexboost.losses import Absolute, Laplacian, TotalVariation

TERMS = {"no term": (None, GREY), "Laplacian": (Laplacian, AMBER), "total variation": (TotalVariation, TEAL)}
STRENGTHS = (0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)


def main(out: Path, small: bool = False) -> dict[str, float]:
    """Fit the three losses, draw the fits, return their distances from the truth."""
    rng, n = np.random.default_rng(0), 50 if small else 200
    place = np.arange(n)
    truth = (
        np.array([0.0, 2.0, 2.0, -1.0, 1.0])[5 * place // n] + (5 * place // n == 2) * (place / n - 0.4) * 5
    )
    Y = truth + 0.5 * rng.standard_t(2, size=(3, n))
    x, y = np.tile(place, 2), Y[:2].ravel()
    edges = np.column_stack([place[:-1], place[1:]])

    def fit(term: type | None, strength: float) -> tuple[np.ndarray, float, float]:
        """Return the curve, its error at the third measurements, and the strength."""
        loss = Absolute() if term is None else Absolute() + term(edges, strength)
        model = ConvexBoostRegressor(loss, "additive", n_rounds=50 if small else 500, early_stopping=False)
        model.fit(x[:, None], y, groups=None if term is None else x)
        curve = model.predict(place[:, None])
        return curve, float(np.abs(curve - Y[2]).mean()), strength

    fig, axes = figure(3, height=3.5, sharey=True)
    distance = {}
    for ax, (name, (term, colour)) in zip(axes, TERMS.items(), strict=True):
        candidates = [fit(term, strength) for strength in (STRENGTHS if term else (0.0,))]
        curve, _, strength = min(candidates, key=lambda candidate: candidate[1])
        distance[name] = float(np.abs(curve - truth).mean())
        ax.plot(x, y, ".", color=GREY, ms=3, alpha=0.45)
        ax.plot(place, truth, color=INK, lw=1.0)
        ax.step(place, curve, color=colour, lw=1.8, where="mid")
        ax.set_title(
            f"{name}{f', strength {strength:g}' if term else ''}\nmean distance {distance[name]:.2f}",
            fontsize=9,
            loc="left",
            color=colour,
        )
        ax.set(xlabel="place", ylim=(-4.5, 5.5), xlim=(0, n - 1))
    label(axes[0], 0.02, 0.95, "black: truth; dots: measurements", INK, xycoords="axes fraction")
    ranking = sorted(distance.items(), key=lambda item: item[1])
    return finish(
        fig,
        out,
        f"Mean distance from the truth: {', '.join(f'{name} {d:.2f}' for name, d in ranking)}",
        distance,
    )


if __name__ == "__main__":
    run(main, "graph")
