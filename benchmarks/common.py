"""What the benchmarks share: options, alternating timing, fresh processes, tables, the machine, the results.

Every program prints a Markdown page, writes it to `--out` (docs/benchmarks) and leaves its figures in
`results.json` beside it, where `figure.py` finds them.
"""

from __future__ import annotations

import argparse
import functools
import gc
import importlib.metadata
import inspect
import json
import os
import platform
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from threadpoolctl import threadpool_limits

try:
    import psutil
except ModuleNotFoundError:  # only the remark on other processes needs it
    psutil = None

ROOT = Path(__file__).parents[1]
OUT = ROOT / "docs" / "benchmarks"
QUICK_OUT = Path(tempfile.gettempdir()) / "convexboost-benchmarks-quick"
PACKAGES = ("numpy", "numba", "scikit-learn", "lightgbm", "xgboost", "catboost", "interpret-core")
#: A task that has taken this many seconds in all is not repeated again.
SLOW = 120.0
#: When other processes keep more than this share of the machine busy, the page says so.
IDLE = 5.0

Seconds = dict[str, list[float]]


# -- options ---------------------------------------------------------------------------------------------


def parser(description: str | None, repeats: int = 5) -> argparse.ArgumentParser:
    """Return a parser with the options of every benchmark."""
    out = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    out.add_argument("--threads", type=int, default=len(cpus()), help="for ours and all peers (all cores)")
    out.add_argument("--repeats", type=int, default=repeats, help=f"of each measurement ({repeats})")
    out.add_argument("--quick", action="store_true", help="one repeat, little data: only to see that it runs")
    out.add_argument("--out", type=Path, help="folder of the page and of results.json")
    out.add_argument("--child", type=json.loads, help=argparse.SUPPRESS)
    return out


def parse(parser: argparse.ArgumentParser, **quick: Any) -> argparse.Namespace:
    """Read the command line; `quick` are the values that --quick gives to options left alone."""
    quick_values = {"repeats": 1, **quick} if "--quick" in sys.argv else {}
    parser.set_defaults(out=QUICK_OUT if quick_values else OUT, **quick_values)
    arguments = parser.parse_args()
    threadpool_limits(arguments.threads)  # OpenMP and BLAS, for peers that have no parameter of their own
    arguments.busy = 0.0 if arguments.child or psutil is None else psutil.cpu_percent(interval=1.0)
    return arguments


def cpus() -> list[int]:
    """Return the processors this process may use."""
    return (
        sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(os.cpu_count()))
    )


# -- timing ----------------------------------------------------------------------------------------------


def timed(task: Callable[[], Any]) -> tuple[float, Any]:
    """Return the seconds a task takes, and what it returns."""
    gc.collect()
    began = time.perf_counter()
    result = task()
    return time.perf_counter() - began, result


def alternate(tasks: Mapping[str, Callable[[], Any]], repeats: int) -> Seconds:
    """Time the tasks in turn, `repeats` times over (less often those that are slow)."""
    seconds: Seconds = {name: [] for name in tasks}
    for _ in range(repeats):
        for name, task in tasks.items():
            if not seconds[name] or sum(seconds[name]) + seconds[name][-1] <= SLOW:
                seconds[name].append(timed(task)[0])
                note(f"{name}: {seconds[name][-1]:.4g} s")
    return seconds


def per_round(history: Mapping[str, Any], first: int, last: int | None = None) -> float:
    """Return the median seconds of the rounds from `first` to `last` of a fit."""
    return float(np.median(np.diff(history["seconds"])[first - 1 : last]))


def median(values: Iterable[float]) -> float:
    """Return the median."""
    return float(statistics.median(values))


def geometric_mean(values: Iterable[float]) -> float:
    """Return the geometric mean."""
    return float(np.exp(np.mean(np.log(list(values)))))


def fresh(command: Sequence[str], on: Sequence[int] | None = None, **environment: str) -> dict[str, Any]:
    """Run Python with these arguments in a process of its own; it prints a JSON object on its last line."""
    pin = functools.partial(os.sched_setaffinity, 0, on) if on else None
    done = subprocess.run(
        [sys.executable, *command],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        preexec_fn=pin,
    )
    return json.loads(done.stdout.strip().splitlines()[-1])


def replaced(owner: Any, name: str, wrap: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Any:
    """Put `wrap(method)` in the place of a method, class method or property, inside a `with`."""
    method = inspect.getattr_static(owner, name)
    if isinstance(method, classmethod):
        return mock.patch.object(owner, name, classmethod(wrap(method.__func__)))
    if isinstance(method, property):
        return mock.patch.object(owner, name, property(wrap(method.fget)))
    return mock.patch.object(owner, name, wrap(method))


def note(text: str) -> None:
    """Say on standard error what goes on."""
    print(f"  {text}", file=sys.stderr, flush=True)


# -- pages and results -----------------------------------------------------------------------------------


def table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def number(value: float) -> str:
    """Return three figures, without an exponent."""
    return f"{value:.3g}" if abs(value) < 100 else f"{value:,.0f}"


def spread(seconds: Sequence[float]) -> str:
    """Return the median, with the extremes where there are several measurements."""
    if len(seconds) == 1:
        return f"{number(seconds[0])} (once)"
    low, high = number(min(seconds)), number(max(seconds))
    return f"{number(median(seconds))} ({low} to {high}, {len(seconds)} times)"


def verdict(reached: bool) -> str:
    """Return what a goal came to."""
    return "reached" if reached else "**missed**"


def machine(arguments: argparse.Namespace) -> str:
    """Return one sentence on the machine and one on the versions."""
    versions = ", ".join(f"{name} {_version(name)}" for name in PACKAGES)
    idle = arguments.busy <= IDLE
    busy = "" if idle else f" **Other processes kept {arguments.busy:.0f} % of the machine busy.**"
    return (
        f"{_processor()}, {len(cpus())} cores, {arguments.threads} threads for every library; "
        f"{platform.system()}, Python {platform.python_version()}.{busy}\n\n"
        f"convexboost {_version('convexboost')} ({_commit()}), {versions}."
    )


def publish(
    arguments: argparse.Namespace, name: str, title: str, body: str, results: Mapping[str, Any]
) -> None:
    """Print the page, write it, and keep the figures in results.json."""
    command = shlex.join(["python", f"benchmarks/{Path(sys.argv[0]).name}", *sys.argv[1:]])
    text = f"# {title}\n\nCommand: `{command}`\n\n{machine(arguments)}\n\n{body}\n"
    print(text)
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / f"{name}.md").write_text(text)
    known = load(arguments.out)
    known[name] = {"threads": arguments.threads, **results}
    (arguments.out / "results.json").write_text(json.dumps(known, indent=1) + "\n")


def load(out: Path) -> dict[str, Any]:
    """Return what the benchmarks have left in results.json."""
    path = out / "results.json"
    return json.loads(path.read_text()) if path.exists() else {}


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def _commit() -> str:
    git = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
    done = subprocess.run(git, capture_output=True, text=True, check=False)
    return f"commit {done.stdout.strip()}" if done.returncode == 0 else "no commit"
