"""A report as Markdown: everything is there, and small."""

import csv
import re

import numpy as np
import pytest

from convexboost.reports import figures
from convexboost.reports.markdown import MOST_POINTS, thinned, write_markdown

from .pages import MEAN, REPORT, T


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    folder = tmp_path_factory.mktemp("markdown") / "new"
    return write_markdown(REPORT.sections, folder, {"command": "`the command`"})


def test_everything_is_there(path):
    words = path.read_text()
    for section in REPORT.sections:
        assert f"{'#' * section.level} {section.title}\n" in words
    pictures = re.findall(r"!\[.*?\]\((.+?)\)", words)
    assert pictures == ["log.png", "log-2.png", "a-map.png", "points.png", "band.png"]
    for name in [*pictures, *re.findall(r"\[numbers\]\((.+?)\)", words)]:
        assert 0 < (path.parent / name).stat().st_size < 150_000
    for verdict in REPORT.verdicts:
        assert f"**{verdict.text.capitalize()}**: “{verdict.claim}” (Section 5)" in words
    assert "- a value < another: 0.5 < 1 ✓" in words
    assert "- a value < another: 2 < 1 ✗" in words
    assert "- a value < another: – < 1 ?" in words
    assert words.endswith("- command: `the command`\n")


def test_a_table_has_as_many_cells_in_every_row(path):
    rows = [line for line in path.read_text().splitlines() if line.startswith("| ")]
    assert len(rows) > 2
    assert len({row.replace("\\|", "").count("|") for row in rows}) == 1


def test_thinned_points_are_points_of_the_line(tmp_path):
    figure = next(
        b for s in REPORT.sections for b in s.blocks if isinstance(b, figures.LineFigure) and MEAN in b.lines
    )
    few = thinned(figure)
    line = few.lines[0]
    assert len(line.x) == len(line.y) <= MOST_POINTS
    rows = np.searchsorted(T, line.x)
    np.testing.assert_allclose(line.y, 1 / (T[rows] + 2), rtol=1e-5)
    np.testing.assert_allclose(line.band, [0.5 / (T[rows] + 2), 2 / (T[rows] + 2)], rtol=1e-5)
    figures.write_csv(few, tmp_path / "x.csv")
    with (tmp_path / "x.csv").open(newline="") as file:
        assert len(next(csv.reader(file))) == 5
