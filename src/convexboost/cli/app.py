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
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Format = Annotated[
    str | None,
    typer.Option("--format", help="csv, parquet or svmlight; by default by the file's name or content."),
]
Target = Annotated[str | None, typer.Option(help="The column to predict; not for SVMlight.")]
Weight = Annotated[str | None, typer.Option(help="The column with the weights of the rows.")]
Query = Annotated[
    str | None, typer.Option(help="The column with the queries, for ranking; groups for other losses.")
]


def _run(command: str, work: Callable[[], int | None]) -> None:
    """Do the work of a command; where the user or the disk is to blame, say so in a line."""
    try:
        status = work()
    except BrokenPipeError:  # whoever reads the output has had enough
        raise
    except (CommandError, OSError) as error:
        typer.echo(f"convexboost {command}: {error}", err=True)
        status = error.status if isinstance(error, CommandError) else 1
    except KeyboardInterrupt as error:
        typer.echo(f"convexboost {command}: {str(error) or 'interrupted'}", err=True)
        status = 130
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
    """Boosting for any convex loss.

    \b
    Exit status: 0 all is well, 1 something failed (the disk, training), 2 wrong usage or
    input (an unknown option, a broken file), 130 after Ctrl-C.

    \b
    Examples:
      convexboost fit houses.csv --target price --out houses.convexboost
      convexboost predict houses.convexboost new.csv --out prices.csv
      convexboost evaluate houses.convexboost test.csv --target price
      convexboost inspect houses.convexboost
    """


@app.command()
def fit(
    data: Annotated[Path, typer.Argument(help="CSV, Parquet, SVMlight or LETOR; - is standard input.")],
    target: Target = None,
    task: Annotated[
        str | None,
        typer.Option(help="classification, regression or ranking; by default as the target suggests."),
    ] = None,
    loss: Annotated[str | None, typer.Option(help="See `convexboost losses`: quantile:0.9")] = None,
    learner: Annotated[str | None, typer.Option(help="See `convexboost learners`: tree")] = None,
    valid: Annotated[Path | None, typer.Option(help="A file with rows to validate on.")] = None,
    weight: Weight = None,
    query: Query = None,
    drop: Annotated[list[str] | None, typer.Option(help="A column not to use; may be repeated.")] = None,
    config: Annotated[
        Path | None, typer.Option(help="TOML or JSON: parameters of the estimator and these options.")
    ] = None,
    sets: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A parameter of the estimator; may be repeated."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="The model file; by default named after the data file.", metavar="MODEL"),
    ] = None,
    form: Format = None,
    verbose: Annotated[
        bool | None, typer.Option("--verbose/--quiet", help="Show progress; by default on a terminal.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Train a model on a file and save it.

    Columns with text are categories, dates are numbers of seconds, empty cells are missing values.

    \b
    Examples:
      convexboost fit iris.csv --target species
      convexboost fit houses.csv --target price --loss quantile:0.9 --drop id
      convexboost fit train.parquet --target y --valid valid.parquet --set learner__max_leaves=31
      convexboost fit train.letor --task ranking --config settings.toml --out ranker.convexboost
    """
    from convexboost.cli.fit import FitOptions, run

    given = FitOptions(
        data=data,
        target=target,
        task=task,
        loss=loss,
        learner=learner,
        valid=valid,
        weight=weight,
        query=query,
        drop=drop or (),
        config=config,
        sets=sets or (),
        out=out,
        form=form,
        verbose=None if verbose is None else int(verbose),
        as_json=as_json,
    )
    _run("fit", lambda: run(given))


@app.command()
def predict(
    model: Annotated[Path, typer.Argument(help="A model file.")],
    data: Annotated[Path, typer.Argument(help="The rows; - is standard input.")],
    out: Annotated[
        Path | None,
        typer.Option(help="CSV, Parquet or JSON lines, by its name; by default CSV on stdout."),
    ] = None,
    proba: Annotated[bool, typer.Option("--proba", help="The probability of each class.")] = False,
    scores: Annotated[bool, typer.Option("--scores", help="Scores, before any link.")] = False,
    keep: Annotated[
        list[str] | None, typer.Option(help="A column of the data to write first; may be repeated.")
    ] = None,
    form: Format = None,
    as_json: Annotated[bool, typer.Option("--json", help="A line of JSON per row.")] = False,
) -> None:
    """Predict for the rows of a file.

    Columns are found by name; others, the target among them, are ignored.

    \b
    Examples:
      convexboost predict houses.convexboost new.csv
      convexboost predict iris.convexboost new.csv --proba --keep id --out answers.parquet
      cat new.csv | convexboost predict iris.convexboost - | head
    """
    from convexboost.cli.predict import run

    _run(
        "predict",
        lambda: run(
            model,
            data,
            out,
            proba=proba,
            scores=scores,
            keep=keep or (),
            form=form,
            as_json=as_json,
        ),
    )


@app.command()
def evaluate(
    model: Annotated[Path, typer.Argument(help="A model file.")],
    data: Annotated[Path, typer.Argument(help="Rows with their targets; - is standard input.")],
    target: Target = None,
    weight: Weight = None,
    query: Query = None,
    form: Format = None,
    as_json: Json = False,
) -> None:
    """Measure a model on the rows of a file.

    \b
    Examples:
      convexboost evaluate iris.convexboost test.csv --target species
      convexboost evaluate ranker.convexboost test.letor --json
    """
    from convexboost.cli.evaluate import run
    from convexboost.cli.rows import Roles

    _run("evaluate", lambda: run(model, data, Roles(target, weight, query), form, as_json))


@app.command()
def export(
    model: Annotated[Path, typer.Argument(help="A model file.")],
    onnx: Annotated[Path | None, typer.Option(help="The ONNX file to write.")] = None,
    as_json: Json = False,
) -> None:
    """Write a model in another format.

    \b
    Example:
      convexboost export houses.convexboost --onnx houses.onnx
    """
    from convexboost.cli.export import run

    _run("export", lambda: run(model, onnx, as_json))


@app.command()
def losses(as_json: Json = False) -> None:
    """List the losses that --loss knows.

    A number after a colon is the first parameter: quantile:0.9.
    """
    from convexboost.cli import listing

    _run("losses", lambda: listing.run(listing.losses(), as_json))


@app.command()
def learners(as_json: Json = False) -> None:
    """List the weak learners that --learner knows.

    Their parameters are set by --set learner__name=value.
    """
    from convexboost.cli import listing

    _run("learners", lambda: listing.run(listing.learners(), as_json))


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
        typer.Argument(help="A model file."),
    ],
    figure: Annotated[
        Path | None, typer.Option(help="Draw convergence and edges into this file (.png, .svg, .pdf).")
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Write a page about the model to this file.")] = None,
    data: Annotated[
        Path | None, typer.Option(help="A file with rows for the page, best such as were not trained on.")
    ] = None,
    target: Target = None,
    weight: Weight = None,
    query: Query = None,
    form: Format = None,
    pickles: Annotated[
        bool,
        typer.Option(
            "--pickle",
            help="MODEL is a pickle or a joblib dump.  Loading runs any code in it: trust it first.",
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Say what a saved model is, how its training went, and what went wrong, if anything.

    With --html it writes a page with curves and importances; rows of --data are measured and explained.
    A model file is only read; of a pickle (--pickle) the code is run.
    """
    from convexboost.cli.inspect import Page, run
    from convexboost.cli.rows import Roles

    page = None if html is None else Page(html, data, Roles(target, weight, query), form)
    if data is not None and page is None:
        raise typer.BadParameter("goes with --html", param_hint="--data")
    _run("inspect", lambda: run(model, figure, page, pickles=pickles, as_json=as_json))


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

    All runs take about 4 hours on 2 cores; finished ones are kept, and after Ctrl-C the same command goes on.
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
