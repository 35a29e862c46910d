"""Run every benchmark, one after the other, and draw the figure: `make bench`, `convexboost bench`.

    python benchmarks/run_all.py [--quick] [--threads N] [--repeats N] [--out FOLDER] [--only NAME ...]

Pages, results.json and speed.png go to docs/benchmarks, with --quick to a temporary folder.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

import common

HERE = Path(__file__).parent
PROGRAMS = (
    "training",
    "prediction",
    "glass_box",
    "trees",
    "weak_learner",
    "residual_round",
    "scaling",
    "threads",
    "startup",
    "phases",
    "ablation",
    "rates",
    "certificate",
    "custom_loss",
    "network_edge",
    "auto_step",
)


def command(name: str, arguments: argparse.Namespace) -> list[str]:
    """Return the command line of one program."""
    line = [sys.executable, str(HERE / f"{name}.py")]
    if name == "auto_step":
        return [*line, "--out", str(arguments.out / "auto_step.md")]
    line += ["--quick"] * arguments.quick
    for option in ("threads", "repeats"):
        value = getattr(arguments, option)
        line += [f"--{option}", str(value)] if value else []
    return line if arguments.out == _default(arguments) else [*line, "--out", str(arguments.out)]


def _default(arguments: argparse.Namespace) -> Path:
    return common.QUICK_OUT if arguments.quick else common.OUT


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="little data: only to see that all of it runs")
    parser.add_argument("--threads", type=int, help="for ours and all peers (all cores)")
    parser.add_argument("--repeats", type=int, help="of each measurement")
    parser.add_argument("--out", type=Path, help="folder of the pages")
    parser.add_argument("--only", nargs="+", choices=PROGRAMS, help="run these alone")
    arguments = parser.parse_args()
    arguments.out = arguments.out or _default(arguments)
    wanted = arguments.only or [name for name in PROGRAMS if name != "auto_step" or not arguments.quick]
    failed = []
    for name in wanted:
        print(f"--- {name}", file=sys.stderr, flush=True)
        if subprocess.run(command(name, arguments), check=False).returncode:
            failed.append(name)
    drawn = subprocess.run(
        [sys.executable, str(HERE / "figure.py"), "--out", str(arguments.out)], check=False
    )
    if failed or drawn.returncode:
        raise SystemExit(f"failed: {', '.join(failed) or 'figure'}")


if __name__ == "__main__":
    main()
