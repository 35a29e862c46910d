"""``convexboost demo``: a minute that shows what the paper is about."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table

from convexboost.cli.output import check_folder
from convexboost.cli.reproduce import run_all, save
from convexboost.estimators import ConvexBoostClassifier
from convexboost.paper import counterexample, digits
from convexboost.paper.curve import PAPER, Curve
from convexboost.paper.study import compose
from convexboost.reports.figures import COLOURS

COUNTEREXAMPLE_ROUNDS = counterexample.QUICK
LEAD = """
Boosting by projecting the gradient on weak learners works for smooth losses and can fail for others. Three
algorithms of Grubb and Bagnell (2011) side by side: naive, which is ordinary gradient boosting, and the two
that do not fail, repeated and residual.
"""


def run(out: Path, weak_learners: int) -> int:
    """Train, print, draw, report; return the exit status."""
    check_folder(out, "--out")
    console = Console()
    began = time.perf_counter()
    with console.status("compiling the kernels (once: the next run finds them on disk)"):
        _compile()
    console.print(f"kernels ready after {time.perf_counter() - began:.1f} s\n")

    console.print(
        f"[bold]Handwritten digits[/]: 10 classes, multiclass hinge, up to {weak_learners} stumps each"
    )
    studies = [digits.study(weak_learners), counterexample.study(quick=True)]
    done = run_all(studies, out, console, fresh=True)
    complete = all(outcome.complete for _, outcome in done)
    if complete:
        _tell(console, list(done[0][1].results.values()), out)
    command = f"convexboost demo --out {out} --weak-learners {weak_learners}"
    seconds = time.perf_counter() - began
    page = save(compose("What convexboost is about", LEAD, done, command, seconds), done, out)
    console.print(f"report: {page}    total: {time.perf_counter() - began:.0f} s", soft_wrap=True)
    return 0 if complete else 130 if any(outcome.interrupted for _, outcome in done) else 1


def _tell(console: Console, curves: list[Curve], out: Path) -> None:
    console.print(_table(curves))
    runs = {algorithm: counterexample.run(algorithm, COUNTEREXAMPLE_ROUNDS) for algorithm in PAPER}
    console.print(
        "\n[bold]The paper's counter-example[/]: R = ½ (2 |f(x1)| + 0.9 |f(x2)|), "
        f"{COUNTEREXAMPLE_ROUNDS} rounds"
    )
    console.print(_counterexample_table(runs))
    console.print("")
    for sentence in sentences(curves, runs):
        console.print(sentence)
    console.print(f"\npicture: {draw(curves, runs, out)}", soft_wrap=True)


def _compile() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), rng.integers(3, size=60)
    for algorithm in PAPER:
        list(
            ConvexBoostClassifier("multiclass_hinge", "stump", algorithm, n_rounds=2, early_stopping=False)
            .fit(X, y)
            .staged_predict(X)
        )


def _table(curves: list[Curve]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("algorithm")
    for column in ("objective", "train", "test", "learners", "distinct", "gradients", "seconds"):
        table.add_column(column, justify="right")
    for c in curves:
        best = int(np.argmin(c["objective"]))
        error = max(best, 1)  # there is no error at the start
        table.add_row(
            c.algorithm,
            f"{c['objective'][best]:.4f}",
            f"{c['train_error'][error]:.2%}",
            f"{c['test_error'][error]:.2%}",
            f"{c['weak_learners'][-1]:.0f}",
            f"{c.facts['distinct stumps']}",
            f"{c['gradient_evaluations'][-1]:.0f}",
            f"{c['seconds'][-1]:.2f}",
        )
    return table


def _counterexample_table(runs: dict[str, counterexample.TwoPointRun]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("algorithm")
    for column in ("mean objective", "last objective", "f(x1)", "f(x2)"):
        table.add_column(column, justify="right")
    for algorithm, found in runs.items():
        f1, f2 = found.points[-1]
        mean = found.objective[:-1].mean()
        table.add_row(algorithm, f"{mean:.4f}", f"{found.objective[-1]:.4f}", f"{f1:.4f}", f"{f2:.4f}")
    return table


def sentences(curves: list[Curve], runs: dict[str, counterexample.TwoPointRun]) -> list[str]:
    """Say what was seen, from the numbers."""
    reached = {c.algorithm: (c.lowest(), int(c["weak_learners"][-1])) for c in curves}
    first, *others = sorted(reached, key=lambda algorithm: reached[algorithm])
    rest = ", ".join(f"{a} stood at {reached[a][0]:.3g} after {reached[a][1]}" for a in others)
    distinct = ", ".join(f"{c.algorithm} {c.facts['distinct stumps']}" for c in curves)
    digits = (
        f"On the digits {first} brought the hinge objective from {curves[0]['objective'][0]:.3g} to "
        f"{reached[first][0]:.3g} with {reached[first][1]} weak learners; {rest} "
        f"(different stumps used: {distinct})."
    )
    stuck = [a for a, found in runs.items() if found.points[-1, 1] == found.points[0, 1]]
    moved = [a for a in runs if a not in stuck]
    counter = (
        f"On the counter-example {' and '.join(stuck) or 'no algorithm'} never moved f(x2)"
        f"{' at all, however large its edge' if stuck else ''}; {' and '.join(moved) or 'none'} did."
    )
    return [digits, counter]


def draw(curves: list[Curve], runs: dict[str, counterexample.TwoPointRun], out: Path) -> Path:
    """Draw objective, test error and counter-example; return the path of the picture."""
    figure = Figure(figsize=(12, 3.6), layout="constrained")
    axes = figure.subplots(1, 3)
    for c in curves:
        learners, style = c["weak_learners"][1:], _style(c.algorithm)
        axes[0].plot(learners, np.minimum.accumulate(c["objective"])[1:], **style)
        axes[1].plot(learners, 100 * c["test_error"][1:], **style)
    for algorithm, found in runs.items():
        rounds = np.arange(1, len(found.objective))
        axes[2].plot(rounds, np.cumsum(found.objective[:-1]) / rounds, **_style(algorithm))
    axes[0].set(
        title="Digits: training objective (best so far)",
        xlabel="weak learners",
        xscale="log",
        yscale="log",
        ylim=1e-3,
    )
    axes[1].set(title="Digits: test error (%)", xlabel="weak learners", xscale="log", yscale="log")
    axes[2].set(title="Counter-example: mean objective", xlabel="round", xscale="log", yscale="log")
    for ax in axes:
        ax.spines[["top", "right"]].set_visible(False)
        ax.tick_params(which="minor", labelleft=False)
        ax.grid(alpha=0.25, which="both", linewidth=0.5)
    axes[1].set_yticks([5, 10, 20, 50, 90], labels=["5", "10", "20", "50", "90"])
    axes[0].legend(frameon=False)
    out.mkdir(parents=True, exist_ok=True)
    figure.savefig(out / "curves.png", dpi=150)
    return out / "curves.png"


def _style(algorithm: str) -> dict[str, Any]:
    return {"label": algorithm, "color": COLOURS[algorithm], "linewidth": 1.8}
