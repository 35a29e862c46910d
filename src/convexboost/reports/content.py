"""What a report consists of: sections of text, tables, figures and verdicts, as plain data.

    Section("Letter", [Text("..."), LineFigure("Training objective", lines, log_x=True), table])

Nothing here draws; `figures` and `report` do.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array: TypeAlias = NDArray[np.float64]

# --- Text and tables ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Text:
    """Paragraphs, separated by empty lines.

    ``**bold**``, ``*emphasis*`` and `` `code` `` are understood; lines that begin with "- " are a list.
    """

    words: str


@dataclass(frozen=True)
class Table:
    """Rows of cells; numbers are right-aligned and written with four digits, text stands as it is."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    caption: str = ""


@dataclass(frozen=True)
class Facts:
    """A few numbers in large type, each with what it is."""

    facts: Sequence[tuple[str, Any]]


# --- Figures -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Line:
    """One curve of a figure.  NaN is a gap.  Lines of one `colour` word have one colour in every figure."""

    name: str
    x: ArrayLike
    y: ArrayLike
    colour: str = ""  #: e.g. the algorithm; by default the name
    dash: str = "solid"  #: "solid", "dash" or "dot"
    other_x: Mapping[str, ArrayLike] = field(default_factory=dict)  #: label: what x may be instead
    band: tuple[ArrayLike, ArrayLike] | None = None  #: lowest and highest, e.g. of the folds; shaded
    kind: str = ""  #: "line" or "marker"; by default that of the figure

    @property
    def points(self) -> tuple[Array, Array]:
        """Return x and y as arrays."""
        return np.asarray(self.x, float), np.asarray(self.y, float)


@dataclass(frozen=True)
class LineFigure:
    """Curves: interactive in the report, and beside it as PNG, SVG and CSV."""

    title: str
    lines: Sequence[Line]
    xlabel: str
    ylabel: str
    log_x: bool = False
    log_y: bool = False
    caption: str = ""
    kind: str = "line"  #: or "marker": points without a line between them

    @property
    def choices(self) -> list[str]:
        """Return what the reader can have on the horizontal axis: what every line has."""
        others = [set(line.other_x) for line in self.lines]
        return [
            self.xlabel,
            *(n for n in (self.lines[0].other_x if self.lines else ()) if n in set.intersection(*others)),
        ]


@dataclass(frozen=True)
class ImageFigure:
    """A Matplotlib figure as it is, e.g. a map.  `draw` makes it, when the report is written."""

    title: str
    draw: Callable[[], Figure]
    caption: str = ""


@dataclass(frozen=True)
class Bars:
    """Numbers as bars, one below the other, drawn by the page itself; negative ones go to the left."""

    title: str
    bars: Sequence[tuple[str, float]]
    caption: str = ""
    are_shares: bool = False  #: written as percentages


@dataclass(frozen=True)
class Matrix:
    """Counts of pairs, such as true and predicted classes: the larger the share of its row, the darker."""

    title: str
    rows: Sequence[str]
    columns: Sequence[str]
    counts: Sequence[Sequence[float]]
    caption: str = ""


# --- Verdicts ----------------------------------------------------------------------------------------------

RELATIONS: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "≤": operator.le,
    ">": operator.gt,
    "≥": operator.ge,
    "=": operator.eq,
}


@dataclass(frozen=True)
class Comparison:
    """`what` `relation` `than`, with the two numbers; NaN for a number that is not there.

        Comparison("objective of residual", 0.13, "<", 0.25, "half the objective of naive")

    reads "objective of residual < half the objective of naive".  Without `than` the limit stands there.
    """

    what: str
    value: float
    relation: str
    limit: float
    than: str = ""

    def __post_init__(self) -> None:
        if self.relation not in RELATIONS:
            raise ValueError(f"`relation` must be one of {', '.join(RELATIONS)}, got {self.relation!r}")

    @property
    def rule(self) -> str:
        """Return the comparison in words."""
        return f"{self.what} {self.relation} {self.than or number(self.limit)}"

    @property
    def holds(self) -> bool | None:
        """Return whether it is so; None where a number is missing."""
        if math.isnan(self.value) or math.isnan(self.limit):
            return None
        return bool(RELATIONS[self.relation](self.value, self.limit))


REPRODUCED, NOT_REPRODUCED = "reproduced", "not reproduced"
HOLDS, DOES_NOT_HOLD = "holds", "does not hold"  #: what a question of ours is answered with
NOT_DECIDED = "not decided (not all runs are there)"


@dataclass(frozen=True)
class Verdict:
    """A claim of the paper, and whether the numbers bear it out.

    The rule, the numbers and the answer all come from `comparisons`, so they cannot disagree: the claim is
    reproduced where every comparison holds.
    """

    claim: str  #: the paper's words
    comparisons: tuple[Comparison, ...]
    source: str = ""  #: where the paper says so
    note: str = ""  #: what the rule leaves out
    counts: bool = True  #: as the paper's; not where the question or the setting is ours

    @property
    def rule(self) -> str:
        """Return what must hold, in words with the thresholds."""
        return "; ".join(comparison.rule for comparison in self.comparisons)

    @property
    def numbers(self) -> dict[str, tuple[float, float]]:
        """Return the two numbers of each comparison."""
        return {c.rule: (c.value, c.limit) for c in self.comparisons}

    @property
    def holds(self) -> bool | None:
        """Return the answer; None where a number is missing."""
        answers = [comparison.holds for comparison in self.comparisons]
        return None if None in answers else all(answers)

    @property
    def text(self) -> str:
        """Return the answer in words."""
        yes, no = (REPRODUCED, NOT_REPRODUCED) if self.counts else (HOLDS, DOES_NOT_HOLD)
        return {True: yes, False: no, None: NOT_DECIDED}[self.holds]


def verdict(claim: str, *comparisons: Comparison, source: str = "", note: str = "") -> Verdict:
    """Decide a claim: reproduced where all the comparisons hold."""
    if not comparisons:
        raise ValueError("`comparisons` must not be empty: a verdict needs a rule")
    return Verdict(claim, comparisons, source, note)


@dataclass(frozen=True)
class VerdictList:
    """Verdicts, each with its claim, rule and numbers."""

    verdicts: Sequence[Verdict]


# --- Sections ----------------------------------------------------------------------------------------------

Block: TypeAlias = Text | Facts | Table | LineFigure | ImageFigure | Bars | Matrix | VerdictList


@dataclass(frozen=True)
class Section:
    """A title, and what stands below it.  Sections of level 2 belong to the last one of level 1."""

    title: str
    blocks: Sequence[Block]
    level: int = 1


@dataclass(frozen=True)
class Report:
    """Everything on the page."""

    title: str
    sections: Sequence[Section]
    lead: str = ""  #: the sentence below the title
    warning: str = ""  #: e.g. that the report is partial, and how to go on
    footer: Mapping[str, str] = field(default_factory=dict)

    @property
    def verdicts(self) -> list[Verdict]:
        """Return all verdicts, in order; those on questions of ours too."""
        lists = (b for s in self.sections for b in s.blocks if isinstance(b, VerdictList))
        return [verdict for block in lists for verdict in block.verdicts]


def number(value: Any) -> str:
    """Write a cell: numbers with four digits, text as it is."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) and math.isnan(value):
        return "–"
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer() and abs(value) < 1e9):
        return f"{value:,.0f}".replace("-", "−")
    return f"{value:.4g}".replace("-", "−") if isinstance(value, float) else str(value)
