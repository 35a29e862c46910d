"""A loss written in PyTorch: pay for what you miss, not for squared errors.

    python examples/plot_torch.py

A shop orders f, customers want y.  What is missing costs ever more (lost customers), what is left over
costs a fixed price each.  That is one line of PyTorch, which also finds the gradient.  The data are
scikit-learn's Friedman problem with skewed noise.  Settings are default for all three: trees, at most
500 rounds.

Look at the right side: what each model would have cost on fresh rows.  The others know nothing of costs.
"""

from pathlib import Path

import numpy as np
from sklearn.datasets import make_friedman1
from style import AMBER, GREY, TEAL, figure, finish, label, run

from convexboost import ConvexBoostRegressor


class Shortage:
    """½ missing² + ½ left over."""

    def value(self, F, y):
        return (0.5 * (y - F).relu() ** 2 + 0.5 * (F - y).relu()).sum(dim=1)


MODELS = {"absolute": GREY, "half_squared": AMBER, "Shortage": TEAL}


def cost(f: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the same in NumPy, to judge all models alike."""
    return 0.5 * np.maximum(y - f, 0) ** 2 + 0.5 * np.maximum(f - y, 0)


def main(out: Path, small: bool = False) -> dict[str, float]:
    """Fit three losses, draw the cost and what each model pays, return the payments."""
    n = 300 if small else 4000
    X, y = make_friedman1(2 * n, random_state=0)
    y = y + np.random.default_rng(0).exponential(3.0, 2 * n)
    paid = {}
    for name in MODELS:
        loss = Shortage() if name == "Shortage" else name
        model = ConvexBoostRegressor(loss, n_rounds=50 if small else 500, random_state=0)
        model.fit(X[:n], y[:n])
        paid[name] = float(cost(model.predict(X[n:]), y[n:]).mean())

    fig, (left, right) = figure(2, height=3.3)
    f = np.linspace(-4, 6, 400)
    for name, values in (
        ("absolute", np.abs(f)),
        ("half_squared", 0.5 * f**2),
        ("Shortage", cost(f, np.zeros(1))),
    ):
        left.plot(f, values, color=MODELS[name], lw=2.2 if name == "Shortage" else 1.4)
    label(left, 5.9, 1.2, "Shortage, the cost", TEAL, ha="right", va="top")
    label(left, 5.2, 5.5, "absolute", GREY, ha="right")
    label(left, 3.3, 6.3, "half_squared", AMBER, ha="right")
    left.set(
        xlabel="left over (right) or missing (left): f − y", ylabel="loss of a row", ylim=(0, 8), xlim=(-4, 6)
    )

    for place, (name, amount) in enumerate(reversed(paid.items())):
        right.barh(place, amount, color=MODELS[name], height=0.55)
        label(right, amount, place, f"  {amount:.2f}", MODELS[name], va="center")
        label(right, 0, place + 0.31, name, MODELS[name], va="bottom")
    right.set(
        xlabel="mean cost on fresh rows", yticks=[], ylim=(-0.5, 2.7), xlim=(0, 1.15 * max(paid.values()))
    )
    right.spines["left"].set_visible(False)
    right.grid(visible=False, axis="y")
    best = min(paid, key=lambda name: paid[name] if name != "Shortage" else np.inf)
    change = 100 * (paid["Shortage"] / paid[best] - 1)
    return finish(
        fig,
        out,
        f"Trained on the cost itself, a model pays {paid['Shortage']:.2f} on fresh rows, "
        f"{abs(change):.0f} % {'less' if change < 0 else 'MORE'} than {best}",
        paid,
    )


if __name__ == "__main__":
    run(main, "torch")
