"""step="auto" against the best of 13 hand-set scales of inverse_sqrt, on every data set, loss and algorithm.

    python benchmarks/auto_step.py --out docs/benchmarks/auto_step.md

Progress is start minus best objective after 500 weak learners (stumps).  Numeric targets are standardised,
so that the grid of scales 2^-6 ... 2^6 means the same everywhere; auto itself does not depend on units.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import data
import numpy as np

from convexboost.core import FunctionSpace
from convexboost.learners.stump import Stump
from convexboost.registry import available, resolve
from convexboost.train import boost

ALGORITHMS = ("residual", "repeated", "naive")
SCALES = [2.0**e for e in range(-6, 7)]
NUMERIC = ("half_squared", "absolute", "quantile:0.1", "quantile:0.9")
CLASSES = ("multiclass_hinge", "softmax")
N_LEARNERS = 500


def problems(names):
    losses = available("convexboost.objectives")
    for source in data.CLASSIFICATION + data.REGRESSION + data.GRADED:
        if names and source.__name__ not in names:
            continue
        X, y, categorical = source()
        space = FunctionSpace.of(len(y))
        hypotheses = Stump().bind(X, space, categorical)
        fitting = (CLASSES if source not in data.REGRESSION else ()) + (NUMERIC if source not in data.CLASSIFICATION else ())
        for loss in fitting:
            target = y.astype(int) if loss in CLASSES else (y - y.mean()) / y.std()
            yield source.__name__, loss, resolve("loss", loss, losses).bind(target, space), hypotheses


def progress(objective, hypotheses, algorithm, step):
    result = boost(objective, hypotheses, algorithm=algorithm, step=step, n_rounds=N_LEARNERS, max_weak_learners=N_LEARNERS)
    values = result.history["objective"]
    return float(values[0] - values.min()), float(values[0]), result.diverged


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="write the table as Markdown")
    parser.add_argument("--baseline", type=Path, help="keep the hand-set runs in this JSON file")
    parser.add_argument("--only", nargs="*", help="names of data sets")
    parser.add_argument("--algorithms", nargs="*", default=ALGORITHMS)
    parser.add_argument("--step", default="auto")
    arguments = parser.parse_args()
    known = json.loads(arguments.baseline.read_text()) if arguments.baseline and arguments.baseline.exists() else {}
    rows, began = [], time.perf_counter()
    for name, loss, objective, hypotheses in problems(arguments.only):
        for algorithm in arguments.algorithms:
            key = f"{name} {loss} {algorithm}"
            if key not in known:
                known[key] = {
                    scale: progress(objective, hypotheses, algorithm, f"inverse_sqrt:{scale}")[0] for scale in SCALES
                }
                if arguments.baseline:
                    arguments.baseline.write_text(json.dumps(known))
            scale, best = max(known[key].items(), key=lambda item: item[1])
            if arguments.step == "none":
                continue
            made, start, diverged = progress(objective, hypotheses, algorithm, arguments.step)
            ratio = made / best if best > 0 else 1.0
            rows.append((ratio, name, loss, algorithm, start, start - best, float(scale), start - made, diverged))
            print(f"{ratio:6.3f} {name:20s} {loss:16s} {algorithm:9s} start {start:.4g} best {start - best:.4g} "
                  f"(2^{np.log2(float(scale)):+.0f}) auto {start - made:.4g}{'  DIVERGED' * diverged}", flush=True)
    if not rows:
        return
    ratios = np.array([row[0] for row in rows])
    summary = (f"{len(rows)} problems: progress of auto / progress of the best scale: smallest {ratios.min():.3f}, "
               f"median {np.median(ratios):.3f}; {np.sum(ratios >= 0.95)} of {len(rows)} at least 0.95; "
               f"{sum(row[-1] for row in rows)} diverged")
    print(summary, f"({time.perf_counter() - began:.0f} s)")
    if arguments.out:
        lines = ["# step=\"auto\" against hand-set steps", "", "Command: `python benchmarks/auto_step.py --out docs/benchmarks/auto_step.md`", "",
                 "Best objective within 500 stumps; `inverse_sqrt` with the best of the scales 2^-6 … 2^6 for each row, `auto` with nothing set.", "",
                 summary + ".", "",
                 "| data | loss | algorithm | start | best inverse_sqrt | its scale | auto | auto / best progress |", "|---|---|---|---|---|---|---|---|"]
        lines += [f"| {n} | {l} | {a} | {s:.4g} | {b:.4g} | 2^{np.log2(c):.0f} | {m:.4g} | {r:.3f} |" for r, n, l, a, s, b, c, m, _ in sorted(rows, key=lambda r: r[0])]
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
