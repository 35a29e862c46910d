"""The page: well-formed, self-contained, and nothing that was written by others is executed."""

import csv
import json
import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import matplotlib.image
import numpy as np
import pytest

from convexboost.reports import figures
from convexboost.reports.content import Line, LineFigure, Report, Section, Table, number
from convexboost.reports.page import markup, write

from .pages import HOSTILE, REPORT, T, lines

VOID = {"meta", "link", "img", "br"}


class Page(HTMLParser):
    """Checks that tags are closed in order, and collects attributes and text."""

    def __init__(self, html):
        super().__init__()
        self.open, self.tags, self.text, self.scripts = [], [], [], []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, self.getpos()

    def handle_data(self, data):
        (self.scripts if self.open[-1:] == ["script"] else self.text).append(data)

    def all(self, tag):
        return [attrs for name, attrs in self.tags if name == tag]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    out = tmp_path_factory.mktemp("report") / "new"
    path = write(REPORT, out)
    return out, path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page(written):
    return Page(written[1])


def test_well_formed(written, page):
    assert written[1].startswith("<!DOCTYPE html>\n<html lang=")
    ids = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    for attrs in page.all("a"):
        if attrs["href"].startswith("#"):
            assert attrs["href"][1:] in ids
    assert len(page.all("h1")) == 1
    assert all(attrs["alt"] for attrs in page.all("img"))


def test_nothing_comes_from_elsewhere(written, page):
    out, html = written
    for _, attrs in page.tags:
        for name in ("src", "href", "action", "data", "srcset", "poster"):
            if (address := attrs.get(name)) and not address.startswith(("#", "data:")):
                assert re.fullmatch(r"figures/[\w-]+\.(png|svg|csv)", address), address
                assert (out / address).is_file()
    style = re.search(r"<style>(.*?)</style>", html, re.S)[1]
    assert "url(" not in style
    assert "@import" not in style
    policy = next(a["content"] for a in page.all("meta") if a.get("http-equiv"))
    assert policy.startswith("default-src 'none'")
    assert "http" not in policy
    assert sum("function" in script and len(script) > 1e6 for script in page.scripts) == 1  # plotly.js, once


def test_text_is_escaped(page):
    assert HOSTILE in " ".join(page.text)
    assert not any(script.strip() == "alert(1)" for script in page.scripts)
    titles = [attrs.get("aria-label") for attrs in page.all("div") if "aria-label" in attrs]
    assert titles == ["Log", "Log", "Points", "Band"]


def test_the_data_of_the_figures(page):
    found = json.loads(next(s for s in page.scripts if s.startswith("[{")))
    assert [figure["title"] for figure in found] == ["Log", "Log", "Points", "Band"]
    assert found[1]["traces"][1]["name"] == HOSTILE
    for figure in found:
        for trace in figure["traces"]:
            assert len(trace["x"]) == len(trace["y"]) <= figures.MOST_POINTS
            assert {len(side) for side in trace["band"]} <= {len(trace["y"])}
    assert [len(trace["band"]) for trace in found[3]["traces"]] == [2, 0]
    assert [t["mode"] for t in found[2]["traces"]] == ["markers"] * 5


def test_verdicts_are_counted(page):
    text = " ".join(" ".join(page.text).split())
    for words in ("3 claims", "1 reproduced", "1 not reproduced", "1 not decided", "0.5 < 1 ✓", "2 < 1 ✗"):
        assert words in text, words


def test_files_beside_the_page(written):
    out, _ = written
    for name in ("log", "log-2", "points", "a-map"):
        assert matplotlib.image.imread(out / "figures" / f"{name}.png").ndim == 3
        ElementTree.parse(out / "figures" / f"{name}.svg")
    with (out / "figures" / "log.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    assert header == ["line", "rounds", "gap"]
    naive = np.array([row[1:] for row in rows if row[0] == "naive"], float).T
    np.testing.assert_array_equal(naive, [T, 1 / (T + 1)])
    with (out / "figures" / "band.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    assert header == ["line", "rounds", "gap", "lowest", "highest"]
    mean = np.array([row[1:] for row in rows if row[0] == "mean"], float).T
    np.testing.assert_array_equal(mean, [T, *(k / (T + 2) for k in (1, 0.5, 2))])
    naive = np.array([row[2:] for row in rows if row[0] == "naive"], float).T
    assert (naive == naive[0]).all()  # without a band it is its own
    assert [path.name for path in out.glob(".*")] == []


def test_a_report_without_figures_needs_no_library(tmp_path):
    html = write(Report("t", [Section("s", [Table(["a"], [[1]])])]), tmp_path).read_text()
    Page(html)
    assert len(html) < 50_000


@pytest.mark.parametrize("n", [0, 1, 2, 499, 500, 501, 5000, 100_000])
def test_thinning_keeps_the_extremes(n):
    y = np.random.default_rng(n).normal(size=n)
    keep = figures.thin(y)
    assert len(keep) <= figures.MOST_POINTS
    assert (np.diff(keep) > 0).all()
    if n:
        assert {0, n - 1, int(np.argmin(y)), int(np.argmax(y))} <= set(keep.tolist())
    y[::3] = np.nan
    assert len(figures.thin(y)) <= figures.MOST_POINTS


def test_the_reader_chooses_among_what_every_line_has(tmp_path):
    a = Line("a", [1, 2], [3, 4], other_x={"seconds": [5, 6], "gradients": [7, 8]})
    b = Line("b", [1], [3], other_x={"seconds": [9]})
    figure = LineFigure("t", [a, b], "rounds", "gap")
    assert figure.choices == ["rounds", "seconds"]
    assert figures.plotly(figure, figures.colours([figure]))["traces"][0]["xs"] == {
        "rounds": [1, 2],
        "seconds": [5, 6],
    }
    figures.write_csv(figure, tmp_path / "x.csv")
    assert (tmp_path / "x.csv").read_text().split() == [
        "line,rounds,gap,seconds",
        "a,1.0,3.0,5.0",
        "a,2.0,4.0,6.0",
        "b,1.0,3.0,9.0",
    ]
    assert LineFigure("t", [], "rounds", "gap").choices == ["rounds"]


def test_an_algorithm_has_one_colour_everywhere():
    other = LineFigure("o", [Line("a", [1], [1], "dual_averaging"), Line("b", [1], [1])], "x", "y")
    palette = figures.colours([other, LineFigure("t", lines(), "x", "y")])
    assert palette["residual"] == "#00798c"
    assert len({palette[word] for word in ("naive", "repeated", "residual", "dual_averaging", "b")}) == 5
    traces = [figures.plotly(f, palette)["traces"][0] for f in (other, other)]
    assert traces[0]["line"]["color"] == palette["dual_averaging"]


@pytest.mark.parametrize(
    ("words", "html"),
    [
        ("a\nb\n\nc", "<p>a b</p>\n<p>c</p>"),
        ("**a** *b* `c*d*`", "<p><strong>a</strong> <em>b</em> <code>c*d*</code></p>"),
        ("2 * 3 * 4", "<p>2 * 3 * 4</p>"),
        ("- a\n- b", "<ul><li>a</li><li>b</li></ul>"),
        ("<i>&", "<p>&lt;i&gt;&amp;</p>"),
        ("", ""),
    ],
)
def test_markup(words, html):
    assert markup(words) == html


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3, "3"),
        (12345, "12,345"),
        (2.0, "2"),
        (0.123456, "0.1235"),
        (-1.5e-9, "−1.5e−09"),
        (np.float64(-2), "−2"),
        (np.nan, "–"),
        (np.inf, "inf"),
        (True, "yes"),
        (np.bool_(False), "no"),
        ("words-with-dash", "words-with-dash"),
        (None, "None"),
    ],
)
def test_numbers(value, text):
    assert number(value) == text
