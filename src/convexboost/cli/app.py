"""The commands."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

import convexboost
from convexboost.cli.output import CommandError, plain_environment

app = typer.Typer(
    help="Boosting for any convex loss.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _run(command: str, work: Callable[[], int | None]) -> None:
    """Do the work of a command; where the user or the disk is to blame, say so in a line."""
    try:
        status = work()
    except BrokenPipeError:  # whoever reads the output has had enough
        raise
    except (CommandError, OSError) as error:
        typer.echo(f"convexboost {command}: {error}", err=True)
        status = error.status if isinstance(error, CommandError) else 1
    raise typer.Exit(status or 0)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"convexboost {convexboost.__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Boosting for any convex loss."""


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the report and the picture.")] = Path(
        "convexboost-demo"
    ),
    weak_learners: Annotated[int, typer.Option(min=10, help="Budget of each algorithm.")] = 2000,
) -> None:
    """Train the paper's three algorithms side by side on handwritten digits, and run its counter-example."""
    from convexboost.cli.demo import run

    _run("demo", lambda: run(out, weak_learners))


@app.command()
def inspect(
    model: Annotated[
        Path,
        typer.Argument(help="A fitted estimator, saved by pickle or joblib.dump.  Loading it runs its code."),
    ],
    figure: Annotated[
        Path | None, typer.Option(help="Draw convergence and edges into this file (.png, .svg, .pdf).")
    ] = None,
) -> None:
    """Say what a saved model is, how its training went, and what went wrong, if anything.

    A pickle can run any code when it is loaded: inspect only files that you trust.
    """
    from convexboost.cli.inspect import run

    _run("inspect", lambda: run(model, figure))


@app.command()
def reproduce(
    what: Annotated[
        str, typer.Argument(help="classification, ranking, planning, counterexample, or all.")
    ] = "all",
    quick: Annotated[bool, typer.Option("--quick", help="Smaller budgets: minutes, not hours.")] = False,
    out: Annotated[Path, typer.Option(help="Folder for the report and the runs.")] = Path(
        "convexboost-reproduce"
    ),
    fresh: Annotated[bool, typer.Option("--fresh", help="Do not use the runs that are there.")] = False,
    pages: Annotated[
        Path | None, typer.Option(help="Folder for a small page of each experiment; by default OUT/results.")
    ] = None,
) -> None:
    """Run the paper's experiments and write a report: curves, tables, and a verdict for every claim.

    Finished runs are kept in the folder; after Ctrl-C the same command goes on where it stopped.
    `reproduce all --pages docs/results` makes the pages of the repository.
    """
    from convexboost.cli.reproduce import run

    _run("reproduce", lambda: run(what, quick, out, fresh, pages))


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def bench(context: typer.Context) -> None:
    """Time the library beside its peers; takes the options of benchmarks/run_all.py (--quick, --threads).

    With the name of a benchmark first, runs that one with its own options: `bench accuracy --half defaults`.
    """
    options, folder = list(context.args), Path(convexboost.__file__).parents[2] / "benchmarks"
    if not (folder / "run_all.py").is_file():
        typer.echo(
            "the benchmarks live in the source repository, not in the installed package: "
            "clone it and run `make bench` there",
            err=True,
        )
        raise typer.Exit(1)
    name = options.pop(0) if options and not options[0].startswith("-") else "run_all"
    program = folder / f"{name}.py"
    if not program.is_file():
        typer.echo(f"there is no benchmark {name!r} in {folder}", err=True)
        raise typer.Exit(2)
    command = [sys.executable, str(program), *options]
    raise typer.Exit(subprocess.run(command, check=False, env=plain_environment()).returncode)
