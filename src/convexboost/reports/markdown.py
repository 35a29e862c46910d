"""A report small enough to be kept with the code: README.md, and its figures as PNG and thinned CSV."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from convexboost.core.atomic import write_atomically
from convexboost.reports import figures
from convexboost.reports.content import (
    Bars,
    Block,
    Facts,
    ImageFigure,
    Line,
    LineFigure,
    Matrix,
    Section,
    Table,
    Text,
    Verdict,
    VerdictList,
    number,
)
from convexboost.reports.page import file_name

MOST_POINTS = 120  #: of a line in a CSV file
DPI = 80


def write_markdown(sections: Sequence[Section], folder: Path, footer: Mapping[str, str]) -> Path:
    """Write README.md and the figures beside it; return its path.

    Figures of an earlier README.md that this one lacks are removed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    page = folder / "README.md"
    before = _files(page.read_text(encoding="utf-8")) if page.is_file() else set()
    drawn = [b for s in sections for b in s.blocks if isinstance(b, LineFigure)]
    palette, names = figures.colours(drawn), set[str]()
    words = []
    for section in sections:
        words.append(f"{'#' * section.level} {section.title}")
        words += [_block(block, folder, palette, names) for block in section.blocks]
    words.append("\n".join(f"- {key}: {value}" for key, value in footer.items()))
    text = "\n\n".join(words) + "\n"
    write_atomically(page, text.encode())
    for name in before - _files(text):
        (folder / name).unlink(missing_ok=True)
    return page


def _files(text: str) -> set[str]:
    """Return the figures and their numbers that a page links to."""
    return set(re.findall(r"\]\(([A-Za-z0-9_.-]+\.(?:png|csv))\)", text))


def _block(block: Block, folder: Path, palette: dict[str, str], names: set[str]) -> str:
    if isinstance(block, Text):
        return block.words.strip()
    if isinstance(block, Table):
        return _table(block)
    if isinstance(block, VerdictList):
        return "\n\n".join(map(_verdict, block.verdicts))
    if isinstance(block, Facts):
        return "\n".join(f"- {name}: {number(value)}" for name, value in block.facts)
    if isinstance(block, Bars):
        return _table(Table(("", block.title), block.bars, block.caption))
    if isinstance(block, Matrix):
        rows = [(name, *counts) for name, counts in zip(block.rows, block.counts, strict=True)]
        return _table(Table(("", *block.columns), rows, block.caption))
    name = file_name(block.title, names)
    if isinstance(block, ImageFigure):
        block.draw().savefig(folder / f"{name}.png", dpi=DPI)
        links = ""
    else:
        figures.draw(block, palette).savefig(folder / f"{name}.png", dpi=DPI)
        figures.write_csv(thinned(block), folder / f"{name}.csv")
        links = f" ([numbers]({name}.csv))"
    return f"![{block.title}]({name}.png)\n\n{block.caption.strip()}{links}".strip()


def thinned(figure: LineFigure, most: int = MOST_POINTS) -> LineFigure:
    """Return the figure with fewer points."""

    def thin(line: Line) -> Line:
        keep = figures.thin(line.points[1], most)
        return replace(
            line,
            x=_some(line.x, keep),
            y=_some(line.y, keep),
            other_x={name: _some(x, keep) for name, x in line.other_x.items()},
            band=None if line.band is None else (_some(line.band[0], keep), _some(line.band[1], keep)),
        )

    return replace(figure, lines=[thin(line) for line in figure.lines])


def _some(values: ArrayLike, keep: NDArray[np.intp]) -> list[float]:
    """Six digits are enough to look at."""
    return [float(f"{v:.6g}") for v in np.asarray(values, float)[keep].tolist()]


def _table(table: Table) -> str:
    def row(cells: Sequence[Any]) -> str:
        return "| " + " | ".join(number(cell).replace("|", "\\|") for cell in cells) + " |"

    lines = [row(table.columns), row(["---"] * len(table.columns)), *map(row, table.rows)]
    caption = " ".join(table.caption.split())
    return "\n".join(lines) + (f"\n\n{caption}" if caption else "")


def _verdict(verdict: Verdict) -> str:
    marks = {True: "✓", False: "✗", None: "?"}
    rules = [
        f"- {c.rule}: {number(c.value)} {c.relation} {number(c.limit)} {marks[c.holds]}"
        for c in verdict.comparisons
    ]
    source = f" ({verdict.source})" if verdict.source else ""
    note = f"\n\n{verdict.note}" if verdict.note else ""
    return f"**{verdict.text.capitalize()}**: “{verdict.claim}”{source}\n\n" + "\n".join(rules) + note
