"""Random cuts or the best ones, and how wide an envelope: the evidence for what trees do by default.

    python benchmarks/cuts.py [--repeats SPLITS]

Rows of *training parts* only, and sets of scikit-learn: 30 % of them are held out, at random, once for each
repeat.  Numbers: the held-out loss at the round where it is least (patience 50, at most 1,000 rounds), since
the number of rounds is found by validation by default.  Rankings: whole queries are held out, and the share
of their pairs in the wrong order is taken at that round.  Classes: the errors after 500 rounds.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

import common
from common import note, table
from convexboost import ConvexBoostClassifier, ConvexBoostRanker, ConvexBoostRegressor, datasets
from convexboost.learners.tree import Tree
from convexboost.metrics import disagreement
from generalisation import CLASSES, HALF_A_PERCENT, NOISY, NUMBERS, QUERIES, rows

MOST_ROWS, HELD, PATIENCE = 5000, 0.3, 50
ROUNDS = {"numbers": 1000, "classes": 500, "rankings": 1000}
#: The middle column of a table of classes, to be told from the others: more sets of numbers.
COLUMNS = tuple(f"{name}, a column" for name in ("pendigits", "satimage", "letter"))
SMALL_NUMBERS = ("diabetes", "friedman1", "friedman3", *NOISY)
EVEN = tuple(f"{name}, even or odd" for name in ("letter", "pendigits", "satimage", "digits"))


class Trees(NamedTuple):
    """What is varied."""

    splits: str
    leaves: int
    envelope: float = 0.0


BEST = Trees("best", 31)
KINKS = (
    BEST,
    Trees("best", 31, 3.0),
    Trees("best", 31, 10.0),
    *(Trees("random", leaves, width) for leaves in (31, 64) for width in (0.0, 3.0, 10.0, 30.0)),
)
SMOOTH = (BEST, Trees("random", 31), Trees("random", 64))
HINGES = tuple(Trees(s, n, width) for width in (0.0, 3.0, 10.0) for s, n, _ in SMOOTH)

#: Title → (kind, losses, data sets, trees)
QUESTIONS: dict[str, tuple[str, tuple[str, ...], tuple[str, ...], tuple[Trees, ...]]] = {
    "absolute error": ("numbers", ("absolute",), (*NUMBERS, *COLUMNS, *SMALL_NUMBERS), KINKS),
    "quantiles 0.1 and 0.9": (
        "numbers",
        ("quantile:0.1", "quantile:0.9"),
        (*NUMBERS, *COLUMNS, *SMALL_NUMBERS),
        KINKS,
    ),
    "three quantiles at once": ("numbers", ("quantiles",), (*NUMBERS, *COLUMNS, *SMALL_NUMBERS), KINKS[3:]),
    "squared error": ("numbers", ("half_squared",), (*NUMBERS, *COLUMNS, *SMALL_NUMBERS), SMOOTH),
    "two classes, logistic": ("classes", ("logistic",), ("breast_cancer", *EVEN), SMOOTH),
    "two classes, hinge": ("classes", ("hinge",), ("breast_cancer", *EVEN), HINGES),
    "several classes, softmax": ("classes", ("softmax",), (*CLASSES, "digits", "wine"), SMOOTH),
    "rankings": ("rankings", ("ranking_hinge",), QUERIES, SMOOTH),
}


def load(name: str) -> tuple[Any, Any, Any, list[int] | None]:
    """Return X, y, queries and categories of rows of a training part."""
    base, _, what = name.partition(", ")
    if name in NOISY:
        return *NOISY[name](), None, None
    if base in QUERIES:
        found = datasets.load(base)
        assert found.qid is not None
        return found.X[found.train], found.y[found.train], found.qid[found.train], None
    X, y, categorical = rows(base, MOST_ROWS)
    if what == "a column":
        middle = X.shape[1] // 2
        return np.delete(X, middle, axis=1), X[:, middle].astype(float), None, None
    return X, y % 2 if what else y, None, categorical


def held_out(name: str, queries: Any, n_rows: int, seed: int) -> np.ndarray:
    """Draw the rows, or the queries, that are held out."""
    rng = np.random.default_rng([zlib.crc32(name.encode()), seed])
    if queries is None:
        return rng.permutation(n_rows) < HELD * n_rows
    names = np.unique(queries)
    return np.isin(queries, names[rng.permutation(len(names)) < HELD * len(names)])


def fit_numbers(data: Any, held: np.ndarray, options: dict[str, Any]) -> float:
    X, y, _, _ = data
    model = ConvexBoostRegressor(early_stopping=True, n_iter_no_change=PATIENCE, **options)
    model.fit(X[~held], y[~held], X_val=X[held], y_val=y[held])
    return float(np.nanmin(model.history_["validation"]))


def fit_classes(data: Any, held: np.ndarray, options: dict[str, Any]) -> float:
    X, y, _, _ = data
    model = ConvexBoostClassifier(early_stopping=False, **options).fit(X[~held], y[~held])
    return float(np.mean(model.predict(X[held]) != y[held])) + HALF_A_PERCENT


def fit_rankings(data: Any, held: np.ndarray, options: dict[str, Any]) -> float:
    X, y, qid, _ = data
    model = ConvexBoostRanker(early_stopping=True, n_iter_no_change=PATIENCE, **options)
    model.fit(X[~held], y[~held], qid[~held], X_val=X[held], y_val=y[held], qid_val=qid[held])
    return disagreement(y[held], model.predict(X[held]), qid[held])


FITS: Mapping[str, Callable[..., float]] = {
    "numbers": fit_numbers,
    "classes": fit_classes,
    "rankings": fit_rankings,
}


def compare(title: str, n_splits: int, most_rounds: int | None) -> list[dict[str, Any]]:
    """Return, for all trees of a question, percent above or below the first of them, set by set."""
    kind, losses, names, variants = QUESTIONS[title]
    found: dict[Trees, list[float]] = {trees: [] for trees in variants}
    for name in names:
        data = load(name)
        changes: dict[Trees, list[float]] = {trees: [] for trees in variants}
        for loss in losses:
            for seed in range(n_splits):
                held = held_out(name, data[2], len(data[1]), seed)
                values = {}
                for trees in variants:
                    options = {
                        "loss": loss,
                        "learner": Tree(splits=trees.splits, max_leaves=trees.leaves),
                        "envelope": trees.envelope,
                        "n_rounds": min(ROUNDS[kind], most_rounds or ROUNDS[kind]),
                        "categorical_features": data[3],
                        "random_state": seed,
                        "n_jobs": 1,
                    }
                    values[trees] = FITS[kind](data, held, options)
                for trees in variants:
                    changes[trees].append(100.0 * float(np.log(values[trees] / values[variants[0]])))
        for trees in variants:
            found[trees].append(float(np.mean(changes[trees])))
        note(f"{title}, {name}: " + ", ".join(f"{c[-1]:+.1f}" for c in found.values()))
    return [{**trees._asdict(), "changes": dict(zip(names, c, strict=True))} for trees, c in found.items()]


def shown(lines: list[dict[str, Any]]) -> str:
    """Return a table: a line for each kind of trees."""
    head = ["cuts", "leaves", "envelope", "mean", "better on", "worst set", "best set"]
    cells = []
    for i, line in enumerate(lines):
        values = np.array(list(line["changes"].values()))
        error = values.std() / np.sqrt(len(values))
        by = sorted(line["changes"], key=line["changes"].__getitem__)
        ends = [f"{name} {line['changes'][name]:+.1f}" for name in (by[-1], by[0])]
        rest = [f"{values.mean():+.1f} ± {error:.1f}", f"{(values < 0).sum()} of {len(values)}", *ends]
        cells.append([line["splits"], line["leaves"], f"{line['envelope']:g}", *(rest if i else ["0"])])
    return table(head, [line + [""] * (len(head) - len(line)) for line in cells])


def main() -> None:
    arguments = common.parse(common.parser(__doc__, repeats=2))
    rounds = 5 if arguments.quick else None
    found = {title: compare(title, arguments.repeats, rounds) for title in QUESTIONS}
    body = (
        "Percent by which the held-out loss (classes: error plus half a percent; rankings: share of wrong "
        "pairs) lies above that of the first line, as log ratios: mean over the data sets with its standard "
        f"error. Below 0 is better. Everything else is the default; {arguments.repeats} random splits of "
        "each set, training parts only.\n\n"
    )
    body += "\n\n".join(
        f"## {title[0].upper()}{title[1:]}\n\n{shown(lines)}" for title, lines in found.items()
    )
    common.publish(arguments, "cuts", "Random cuts and envelopes", body, found)


if __name__ == "__main__":
    main()
