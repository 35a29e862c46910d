"""A `Report` as one HTML file that needs no network, alone or with its figures beside it.

    write(report, Path("out"))               # out/report.html, out/figures/*.png, *.svg, *.csv
    write_alone(report, Path("model.html"))  # nothing else

plotly.js is embedded once; a content security policy keeps the page from asking the network for anything.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable
from html import escape
from importlib.resources import files
from io import BytesIO
from pathlib import Path
from typing import Any

from convexboost.core.atomic import write_atomically
from convexboost.reports import figures
from convexboost.reports.content import (
    Bars,
    Block,
    Comparison,
    Facts,
    ImageFigure,
    LineFigure,
    Matrix,
    Report,
    Section,
    Table,
    Text,
    Verdict,
    number,
)

SHORT = 40  #: characters of a cell that is kept on one line
POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"


def write(report: Report, out: Path) -> Path:
    """Write report.html and its figures; return its path.  The page appears whole or not at all."""
    (out / "figures").mkdir(parents=True, exist_ok=True)
    write_atomically(out / "report.html", _Page(report, out).html().encode())
    return out / "report.html"


def write_alone(report: Report, path: Path) -> Path:
    """Write the page without files beside it; it appears whole or not at all."""
    write_atomically(path, _Page(report, None).html().encode())
    return path


def markup(words: str) -> str:
    """Turn `Text` into HTML; everything else in it is shown as it is."""
    paragraphs = [p.strip() for p in re.split(r"\n\s*\n", words.strip())]
    return "\n".join(_paragraph(p) for p in paragraphs if p)


def _paragraph(words: str) -> str:
    lines = words.split("\n")
    if all(line.lstrip().startswith("- ") for line in lines):
        return "<ul>" + "".join(f"<li>{_inline(line.lstrip()[2:])}</li>" for line in lines) + "</ul>"
    return f"<p>{_inline(' '.join(line.strip() for line in lines))}</p>"


def _inline(words: str) -> str:
    """Code is taken out first: its stars are stars."""
    parts = re.split(r"`([^`]+)`", words)
    for i, part in enumerate(parts):
        text = escape(part)
        if i % 2:
            parts[i] = f"<code>{text}</code>"
        else:
            text = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", text)
            parts[i] = re.sub(r"\*(\S(?:.*?\S)?)\*", r"<em>\1</em>", text)
    return "".join(parts)


def slug(title: str) -> str:
    """Return a title as part of a file name."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:60] or "figure"


def file_name(title: str, names: set[str]) -> str:
    """Return a name for the files of a figure that is not among `names`, and add it there."""
    name, k = slug(title), 2
    while name in names:
        name, k = f"{slug(title)}-{k}", k + 1
    names.add(name)
    return name


class _Page:
    """One report on its way to HTML."""

    def __init__(self, report: Report, out: Path | None) -> None:
        self.report, self.out = report, out
        drawn = [b for s in report.sections for b in s.blocks if isinstance(b, LineFigure)]
        self.palette = figures.colours(drawn)
        self.plots: list[dict[str, Any]] = []
        self.names: set[str] = set()

    def html(self) -> str:
        from plotly.offline import get_plotlyjs

        report, here = self.report, files("convexboost.reports")
        body = "\n".join(self._section(i, section) for i, section in enumerate(report.sections))
        data = json.dumps(self.plots, allow_nan=False, ensure_ascii=False).replace("<", "\\u003c")
        library = f"<script>{get_plotlyjs()}</script>" if self.plots else ""
        warning = (
            f'<div class="warning" role="status">{markup(report.warning)}</div>' if report.warning else ""
        )
        return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<title>{escape(report.title)}</title>
<link rel="icon" href="data:,">
<style>
{(here / "report.css").read_text(encoding="utf-8")}</style>
</head>
<body>
<header>
<h1>{escape(report.title)}</h1>
{markup(report.lead)}
{self._summary()}
{warning}
</header>
<div class="page">
{self._contents()}
<main>
{body}
</main>
</div>
{self._footer()}
<script type="application/json" id="figure-data">{data}</script>
{library}
<script>
{(here / "report.js").read_text(encoding="utf-8")}</script>
</body>
</html>
"""

    def _summary(self) -> str:
        """Count the verdicts."""
        answers = [verdict.holds for verdict in self.report.verdicts if verdict.counts]
        if not answers:
            return ""
        counts = ((True, "reproduced"), (False, "not reproduced"), (None, "not decided"))
        pills = [
            _pill(holds, f"{answers.count(holds)} {words}") for holds, words in counts if holds in answers
        ]
        return f'<p class="summary">{len(answers)} claims: {" ".join(pills)}</p>'

    def _contents(self) -> str:
        links = "".join(
            f'<a class="level{section.level}" href="#section-{i}">{escape(section.title)}</a>'
            for i, section in enumerate(self.report.sections)
        )
        return f'<nav aria-label="Contents">{links}</nav>'

    def _footer(self) -> str:
        rows = "".join(
            f"<div><dt>{escape(key)}</dt><dd>{escape(value)}</dd></div>"
            for key, value in self.report.footer.items()
        )
        return f"<footer><dl>{rows}</dl></footer>" if rows else ""

    def _section(self, i: int, section: Section) -> str:
        level = section.level + 1
        blocks = "\n".join(self._blocks(section.blocks))
        return (
            f'<section class="level{section.level}" id="section-{i}">'
            f"<h{level}>{escape(section.title)}</h{level}>\n{blocks}\n</section>"
        )

    def _blocks(self, blocks: Iterable[Block]) -> Iterable[str]:
        """Figures that follow one another share a grid."""
        grid: list[str] = []
        for block in blocks:
            if isinstance(block, LineFigure | ImageFigure | Bars | Matrix):
                grid.append(self._figure(block))
                continue
            if grid:
                yield _grid(grid)
                grid = []
            if isinstance(block, Text):
                yield markup(block.words)
            elif isinstance(block, Table):
                yield _table(block)
            elif isinstance(block, Facts):
                yield _facts(block)
            else:
                yield "\n".join(_verdict(verdict) for verdict in block.verdicts)
        if grid:
            yield _grid(grid)

    def _figure(self, block: LineFigure | ImageFigure | Bars | Matrix) -> str:
        if isinstance(block, LineFigure):
            return self._plot(block)
        if isinstance(block, ImageFigure):
            return self._image(block)
        return _bars(block) if isinstance(block, Bars) else _matrix(block)

    def _plot(self, figure: LineFigure) -> str:
        k = len(self.plots)
        self.plots.append(figures.plotly(figure, self.palette))
        links = ""
        if self.out is not None:
            name = f"figures/{file_name(figure.title, self.names)}"
            figures.save(figures.draw(figure, self.palette), self.out / name)
            figures.write_csv(figure, self.out / f"{name}.csv")
            links = _links(name, "png", "svg", "csv")
        hidden = (
            "Values of 0 or below are not shown on a logarithmic axis." if figures.is_hidden(figure) else ""
        )
        rows = [(line.name, *point) for line in figure.lines for point in figures.sample(line)]
        numbers = _table(Table(("line", figure.xlabel, figure.ylabel), rows))
        return f"""<figure class="plot">
<figcaption>{escape(figure.title)}</figcaption>
<div class="legend"></div>
<div class="canvas" data-figure="{k}" role="img" aria-label="{escape(figure.title)}"></div>
{markup(f"{figure.caption} {hidden}")}
{links}
<details><summary>Some of the numbers</summary>{numbers}</details>
</figure>"""

    def _image(self, figure: ImageFigure) -> str:
        links, picture = "", figure.draw()
        if self.out is None:
            buffer = BytesIO()
            picture.savefig(buffer, format="png", dpi=150)
            content = buffer.getvalue()
        else:
            name = f"figures/{file_name(figure.title, self.names)}"
            figures.save(picture, self.out / name)
            content = (self.out / f"{name}.png").read_bytes()
            links = _links(name, "png", "svg")
        return f"""<figure class="image">
<figcaption>{escape(figure.title)}</figcaption>
<img alt="{escape(figure.title)}" src="data:image/png;base64,{base64.b64encode(content).decode()}">
{markup(figure.caption)}
{links}
</figure>"""


def _bars(figure: Bars) -> str:
    """Bars of one scale; where some are negative, zero is in the place that their range gives it."""
    values = [value for _, value in figure.bars]
    low, high = min([0.0, *values]), max([0.0, *values])
    span = (high - low) or 1.0
    rows = []
    for name, value in figure.bars:
        start, length = (min(value, 0.0) - low) / span, abs(value) / span
        kind = "minus" if value < 0.0 else "plus"
        words = f"{100 * value:.1f} %" if figure.are_shares else number(float(f"{value:.3g}"))
        style = f"left:{100 * start:.2f}%;width:{100 * length:.2f}%"
        rows.append(
            f'<tr><th scope="row">{escape(name)}</th><td class="track">'
            f'<i class="{kind}" style="{style}"></i></td><td class="number">{escape(words)}</td></tr>'
        )
    return f"""<figure class="bars">
<figcaption>{escape(figure.title)}</figcaption>
<table><tbody>
{"".join(rows)}
</tbody></table>
{markup(figure.caption)}
</figure>"""


def _matrix(figure: Matrix) -> str:
    head = "".join(f'<th scope="col" class="number">{escape(name)}</th>' for name in figure.columns)
    rows = []
    for name, counts in zip(figure.rows, figure.counts, strict=True):
        total = sum(counts) or 1.0
        cells = "".join(
            f'<td class="number" style="--share:{100 * count / total:.1f}%">{escape(number(count))}</td>'
            for count in counts
        )
        rows.append(f'<tr><th scope="row">{escape(name)}</th>{cells}</tr>')
    return f"""<figure class="matrix">
<figcaption>{escape(figure.title)}</figcaption>
<div class="scroll" tabindex="0"><table><thead><tr><td></td>{head}</tr></thead><tbody>
{"".join(rows)}
</tbody></table></div>
{markup(figure.caption)}
</figure>"""


def _grid(cells: list[str]) -> str:
    return '<div class="grid">\n' + "\n".join(cells) + "\n</div>"


def _links(name: str, *kinds: str) -> str:
    links = " ".join(f'<a href="{name}.{kind}">{kind.upper()}</a>' for kind in kinds)
    return f'<p class="links">{links}</p>'


def _table(table: Table) -> str:
    are_text = [any(isinstance(row[i], str) for row in table.rows) for i in range(len(table.columns))]
    head = "".join(
        f"<th>{escape(name)}</th>" if text else f'<th class="number">{escape(name)}</th>'
        for name, text in zip(table.columns, are_text, strict=True)
    )
    rows = "\n".join(f"<tr>{''.join(_cell(value) for value in row)}</tr>" for row in table.rows)
    caption = f"<caption>{_inline(table.caption)}</caption>" if table.caption else ""
    return (
        f'<div class="scroll" tabindex="0"><table>{caption}<thead><tr>{head}</tr></thead>'
        f"<tbody>\n{rows}\n</tbody></table></div>"
    )


def _facts(block: Facts) -> str:
    tiles = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(number(value))}</dd></div>" for name, value in block.facts
    )
    return f'<dl class="facts">{tiles}</dl>'


def _cell(value: Any) -> str:
    text = escape(number(value))
    kind = "number" if not isinstance(value, str) else "short" if len(value) <= SHORT else "long"
    return f'<td class="{kind}">{text}</td>'


def _pill(holds: bool | None, words: str) -> str:
    kind = {True: "yes", False: "no", None: "open"}[holds]
    return f'<span class="pill {kind}">{escape(words)}</span>'


def _verdict(verdict: Verdict) -> str:
    source = f"<cite>{escape(verdict.source)}</cite>" if verdict.source else ""
    rules = "".join(f"<li>{_comparison(c)}</li>" for c in verdict.comparisons)
    note = f'<p class="note">{_inline(verdict.note)}</p>' if verdict.note else ""
    return f"""<article class="verdict">
{_pill(verdict.holds, verdict.text)}
<blockquote><p>{escape(verdict.claim)}</p>{source}</blockquote>
<p class="rule">Reproduced if</p>
<ul>{rules}</ul>
{note}
</article>"""


def _comparison(comparison: Comparison) -> str:
    mark = {True: "✓", False: "✗", None: "?"}[comparison.holds]
    limit = number(comparison.limit)
    values = f"{number(comparison.value)} {comparison.relation} {limit}"
    kind = {True: "yes", False: "no", None: "open"}[comparison.holds]
    numbers = f'{escape(values)} <span class="mark-{kind}">{mark}</span>'
    return f'<span>{escape(comparison.rule)}</span> <span class="numbers">{numbers}</span>'
