"""step="auto" against the best of 13 hand-set scales of inverse_sqrt, on every data set, loss and algorithm.

    python benchmarks/auto_step.py --out docs/benchmarks/auto_step.md

Progress is start minus best objective after 500 weak learners (stumps).  Numeric targets are standardised,
so that the grid of scales 2^-6 ... 2^6 means the same everywhere; auto itself does not depend on units.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import data
from convexboost.boosting.training import boost
from convexboost.core.space import FunctionSpace
from convexboost.learners.stump import Stump
from convexboost.registry import available, resolve

ALGORITHMS = ("residual", "repeated", "naive")
SCALES = [2.0**e for e in range(-6, 7)]
NUMERIC = ("half_squared", "absolute", "quantile:0.1", "quantile:0.9")
CLASSES = ("multiclass_hinge", "softmax")
N_LEARNERS = 500
IN_SAMPLE = " --out docs/benchmarks/auto_step.md"
HELD_OUT = " --held-out --out docs/benchmarks/auto_step_held_out.md"


def problems(names, sources=data.CLASSIFICATION + data.REGRESSION + data.GRADED):
    losses = available("convexboost.losses")
    for source in sources:
        if names and source.__name__ not in names:
            continue
        X, y, categorical = source()
        space = FunctionSpace.of(len(y))
        hypotheses = Stump().bind(X, space, categorical)
        classes = source not in data.REGRESSION and (y.dtype.kind == "i" or source in data.GRADED)
        fitting = CLASSES * classes + NUMERIC * (y.dtype.kind == "f")
        for loss in fitting:
            target = y.astype(int) if loss in CLASSES else (y - y.mean()) / y.std()
            yield source.__name__, loss, resolve("loss", loss, losses).bind(target, space), hypotheses


def progress(objective, hypotheses, algorithm, step):
    result = boost(
        objective,
        hypotheses,
        algorithm=algorithm,
        step=step,
        n_rounds=N_LEARNERS,
        max_weak_learners=N_LEARNERS,
    )
    values = result.history["objective"]
    return float(values[0] - values.min()), float(values[0]), result.stop.kind == "diverged"


@dataclass(frozen=True)
class Row:
    """One problem: the best hand-set scale and auto."""

    data: str
    loss: str
    algorithm: str
    start: float
    best: float  #: progress of the best hand-set scale
    scale: float
    made: float  #: progress of auto
    diverged: bool

    @property
    def ratio(self) -> float:
        return self.made / self.best if self.best > 0 else 1.0

    def __str__(self) -> str:
        return (
            f"| {self.data} | {self.loss} | {self.algorithm} | {self.start:.4g} "
            f"| {self.start - self.best:.4g} "
            f"| 2^{np.log2(self.scale):.0f} | {self.start - self.made:.4g} | {self.ratio:.3f} |"
        )


def report(rows: list[Row], held_out: bool) -> str:
    ratios = np.array([row.ratio for row in rows])
    lines = [
        '# step="auto" against hand-set steps',
        "",
        f"Command: `python benchmarks/auto_step.py{HELD_OUT if held_out else IN_SAMPLE}`",
        "",
        "Best objective within 500 stumps: `inverse_sqrt` with the best of the scales 2^-6 … 2^6, chosen for",
        "each row, and `auto` with nothing set.  Numeric targets are standardised.  The ratio is of the",
        "progress made (start minus best objective); where no scale makes progress it counts as 1.",
        "",
        "The constants of `auto` were chosen among some forty configurations by looking at "
        + (
            "other data\nsets, not at these."
            if held_out
            else "these same data\nsets: this is not a held-out result."
        ),
        "",
        f"{len(rows)} problems; smallest ratio {ratios.min():.3f}, median {np.median(ratios):.3f}, "
        f"{np.sum(ratios >= 0.95)} at least 0.95; {sum(row.diverged for row in rows)} diverged.",
        "",
        "| data | loss | algorithm | start | best inverse_sqrt | its scale | auto | progress, auto / best |",
        "|---|---|---|---|---|---|---|---|",
    ]
    return "\n".join(lines + [str(row) for row in sorted(rows, key=lambda row: row.ratio)]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, help="write the table as Markdown")
    parser.add_argument("--baseline", type=Path, help="keep the hand-set runs in this JSON file")
    parser.add_argument("--only", nargs="*", help="names of data sets")
    parser.add_argument("--algorithms", nargs="*", default=ALGORITHMS)
    parser.add_argument("--held-out", action="store_true", help="data sets that `auto` was not tuned on")
    arguments = parser.parse_args()
    store = arguments.baseline
    known = json.loads(store.read_text()) if store and store.exists() else {}
    rows = []
    for name, loss, objective, hypotheses in problems(
        arguments.only, *([data.HELD_OUT] if arguments.held_out else [])
    ):
        for algorithm in arguments.algorithms:
            key = f"{name} {loss} {algorithm}"
            if key not in known:
                steps = {scale: f"inverse_sqrt:{scale}" for scale in SCALES}
                known[key] = {
                    c: progress(objective, hypotheses, algorithm, step)[0] for c, step in steps.items()
                }
                if store:
                    store.write_text(json.dumps(known))
            scale, best = max(known[key].items(), key=lambda item: item[1])
            made, start, diverged = progress(objective, hypotheses, algorithm, "auto")
            rows.append(Row(name, loss, algorithm, start, best, float(scale), made, diverged))
            print(rows[-1], "DIVERGED" * diverged, flush=True)
    text = report(rows, arguments.held_out)
    print(next(line for line in text.splitlines() if " problems; " in line))
    if arguments.out:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(text)


if __name__ == "__main__":
    main()
