"""Ranking documents with the pairwise hinge: how the order improves round by round.

    python examples/plot_ranking.py

`ConvexBoostRanker` on the first fold of MQ2008 (46 features, grades 0, 1, 2); on made-up queries if the data
cannot be had.  Settings are default, but for 500 rounds of trees, all of which are drawn.  By default the
model would end at the dot: the best round on the validation queries, by the loss.

Look at both measures on the test queries: the share of pairs in the wrong order, which the hinge bounds from
above, and NDCG@10, which looks at the top of the list only and was not trained for.
"""

from pathlib import Path

import numpy as np
from style import GREY, TEAL, figure, finish, label, run

from convexboost import ConvexBoostRanker
from convexboost.datasets import load_mq2008
from convexboost.metrics import disagreement, ndcg


def made_up(n_queries: int = 300, n_rows: int = 20) -> tuple[str, list[tuple[np.ndarray, ...]]]:
    """Return queries whose grades follow two of ten features, with a level of their own."""
    rng = np.random.default_rng(0)
    qid = np.repeat(np.arange(n_queries), n_rows)
    X = rng.normal(size=(len(qid), 10))
    level = rng.normal(size=n_queries)[qid]
    y = np.digitize(X[:, 0] + np.sin(X[:, 1]) + level + 0.7 * rng.normal(size=len(qid)), [0.5, 1.5]).astype(
        float
    )
    return "made-up queries", [
        (X[part], y[part], qid[part]) for part in (qid % 5 < 3, qid % 5 == 3, qid % 5 == 4)
    ]


def queries() -> tuple[str, list[tuple[np.ndarray, ...]]]:
    """Return training, validation and test queries."""
    try:
        data = load_mq2008()
    except FileNotFoundError as error:
        print(f"MQ2008 cannot be had, so the queries are made up. {error}")
        return made_up()
    return "MQ2008", [(data.X[rows], data.y[rows], data.qid[rows]) for rows in data.folds[0]]


def main(out: Path, small: bool = False) -> dict[str, float]:
    """Fit, draw both measures over the rounds, return them at the chosen round."""
    name, (train, vali, test) = made_up(50) if small else queries()
    n_rounds = 40 if small else 500
    model = ConvexBoostRanker(n_rounds=n_rounds, output="last", early_stopping=False, random_state=0)
    model.fit(*train, X_val=vali[0], y_val=vali[1], qid_val=vali[2])
    chosen = int(np.nanargmin(model.history_["validation"][1:]))
    rounds = np.arange(1, model.n_rounds_ + 1)

    fig, axes = figure(2, sharex=True)
    numbers = {"rounds": float(chosen + 1)}
    for ax, title, measure in zip(
        axes, ("pairs in the wrong order (%)", "NDCG@10 (%)"), (disagreement, ndcg), strict=True
    ):
        for part, (X, y, qid), colour in (("training", train, GREY), ("test", test, TEAL)):
            values = np.array([100 * measure(y, scores, qid) for scores in model.staged_predict(X)])
            ax.plot(rounds, values, color=colour, lw=1.6)
            label(ax, rounds[-1] * 1.05, values[-1], part, colour, va="center")
            numbers[f"{title}, {part}"] = float(values[chosen])
            if part == "test":
                ax.plot(rounds[chosen], values[chosen], "o", color=colour, ms=7)
                text = f"● {values[chosen]:.1f} %, round {chosen + 1},\nchosen on validation queries"
                left = 0.4 if measure is disagreement else 0.05  # away from the curves
                label(ax, left, 0.85, text, TEAL, xycoords="axes fraction")
                numbers[f"{title}, last"] = float(values[-1])
        ax.set(xlabel="rounds", xscale="log", xlim=(1, rounds[-1]))
        ax.set_title(title, fontsize=9, loc="left")
    wrong = "pairs in the wrong order (%), "
    return finish(
        fig,
        out,
        f"{name}: {numbers[wrong + 'test']:.1f} % of the test pairs in the wrong order after {chosen + 1} "
        f"rounds, {numbers[wrong + 'last']:.1f} % after {rounds[-1]}",
        numbers,
    )


if __name__ == "__main__":
    run(main, "ranking")
