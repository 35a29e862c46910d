"""The page in a real browser: nothing complains, everything is drawn, and it fits a phone.

With SCREENSHOTS=folder it leaves pictures to look at.
"""

import os
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from convexboost import ConvexBoostClassifier, ConvexBoostRegressor
from convexboost.paper import counterexample
from convexboost.paper.study import UnitState, compose
from convexboost.reports.page import write

from .browser import CHROMIUM, HOW, Browser
from .pages import HOSTILE, REPORT

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=HOW)

DRAWN = """[...document.querySelectorAll(".canvas")].map(c => ({
  svg: c.querySelectorAll(".main-svg").length,
  traces: c.querySelectorAll(".scatterlayer .trace").length,
  ink: [...c.querySelectorAll(".scatterlayer path")].filter(p => p.getAttribute("d")).length,
  width: c.querySelector(".main-svg").getBoundingClientRect().width,
}))"""


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """A report with everything in it, and a real one, broken off in the middle."""
    out = tmp_path_factory.mktemp("browser")
    study = counterexample.study(quick=True)
    outcome = study.run(out)
    del outcome.results["residual-no-ties"]
    outcome.states["residual-no-ties"] = UnitState("interrupted")
    real = compose("The counter-example", "A lead.", [(study, outcome)], "convexboost reproduce", 1.0)
    return {"made up": write(REPORT, out / "made-up"), "real": write(real, out / "real")}


@pytest.fixture(scope="module")
def browser():
    with Browser() as opened:
        yield opened


@pytest.mark.one_in(3)
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [400, 1200])
@pytest.mark.parametrize("name", ["made up", "real"])
def test_page(reports, browser, name, width, dark):
    browser.errors.clear()
    browser.requests.clear()
    browser.open(reports[name], width, dark=dark)
    drawn = browser.evaluate(DRAWN)
    figures = browser.evaluate('JSON.parse(document.getElementById("figure-data").textContent)')
    assert len(drawn) == len(figures) > 0
    for canvas, figure in zip(drawn, figures, strict=True):
        assert canvas["svg"] > 0
        shown = [t for t in figure["traces"] if any(y is not None for y in t["y"])]
        assert canvas["traces"] >= len(shown) > 0
        assert canvas["ink"] >= len(shown)
        assert 200 < canvas["width"] <= width
    assert browser.evaluate("document.scrollingElement.scrollWidth") <= width
    assert browser.evaluate("document.title") != ""
    images = "[...document.images].every(i => i.complete && i.naturalWidth > 0)"
    assert browser.evaluate(images)
    if folder := os.environ.get("SCREENSHOTS"):
        shade = "dark" if dark else "light"
        browser.screenshot(Path(folder) / f"{name.replace(' ', '-')}-{width}-{shade}.png", whole=True)
    assert browser.errors == []
    asked = [address for address in browser.requests if not address.startswith("data:")]
    assert asked == [reports[name].resolve().as_uri()]


@pytest.fixture(scope="module")
def model_pages(tmp_path_factory):
    """Pages about models of three kinds, with rows."""
    out = tmp_path_factory.mktemp("models")
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(150, 3)), columns=["a", "b", "a rather long name of a column"])
    X["town"] = pd.Categorical(rng.choice(["Bonn", "Köln", "Trier"], 150))
    y = X["a"] + (X["town"] == "Bonn") + 0.3 * rng.normal(size=150)
    labels = np.array(["low", "middle", "high"])[np.digitize(y, [-0.3, 0.7])]
    models = {
        "trees": (ConvexBoostRegressor(n_rounds=20), y),
        "stumps": (ConvexBoostClassifier(learner="stump", n_rounds=20, early_stopping=False), labels),
        "certified": (ConvexBoostRegressor("absolute", "additive", n_rounds=20, certificate=True), y),
    }
    return {
        name: model.fit(X, target).report(out / f"{name}.html", X, target)
        for name, (model, target) in models.items()
    }


@pytest.mark.parametrize("width", [400, 1300])
@pytest.mark.parametrize("name", ["trees", "stumps", "certified"])
def test_the_page_about_a_model(model_pages, browser, name, width):
    browser.errors.clear()
    browser.requests.clear()
    browser.open(model_pages[name], width, dark=name == "stumps")
    drawn = browser.evaluate(DRAWN)
    figures = browser.evaluate('JSON.parse(document.getElementById("figure-data").textContent)')
    assert len(drawn) == len(figures) >= 4
    for canvas, figure in zip(drawn, figures, strict=True):
        assert canvas["ink"] >= len(figure["traces"]) > 0, figure["title"]
    bars = browser.evaluate("""[...document.querySelectorAll(".bars .track")].map(track => {
      const outer = track.getBoundingClientRect(), inner = track.firstChild.getBoundingClientRect();
      return [inner.width, inner.height, inner.left >= outer.left - 1, inner.right <= outer.right + 1]; })""")
    assert len(bars) > 10
    for bar_width, height, starts_inside, ends_inside in bars:
        assert bar_width >= 1
        assert 10 <= height <= 20
        assert starts_inside
        assert ends_inside
    assert browser.evaluate("document.scrollingElement.scrollWidth") <= width
    if folder := os.environ.get("SCREENSHOTS"):
        browser.screenshot(Path(folder) / f"model-{name}-{width}.png", whole=True)
    assert browser.errors == []
    asked = [address for address in browser.requests if not address.startswith("data:")]
    assert asked == [model_pages[name].resolve().as_uri()]


def test_the_legend_switches_lines_off_and_on(reports, browser):
    browser.errors.clear()
    browser.open(reports["made up"], 400)
    count = 'document.querySelector(".canvas").querySelectorAll(".scatterlayer .trace").length'
    before = browser.evaluate(count)
    click = 'document.querySelector(".legend button").click()'
    wait = "new Promise(done => setTimeout(done, 300))"
    browser.evaluate(f"{click}; {wait}")
    assert browser.evaluate(count) == before - 1
    assert browser.evaluate('document.querySelector(".legend button").ariaPressed') == "false"
    browser.evaluate(f"{click}; {wait}")
    assert browser.evaluate(count) == before
    kind = 'document.querySelector(".canvas").layout.yaxis.type'
    assert browser.evaluate(kind) == "log"
    browser.evaluate(f'document.querySelectorAll(".scale")[1].click(); {wait}')
    assert browser.evaluate(kind) == "linear"
    assert browser.errors == []


def test_a_band_goes_with_its_line(reports, browser):
    browser.errors.clear()
    browser.open(reports["made up"], 400)
    last = '[...document.querySelectorAll(".canvas")].at(-1)'
    filled = f'[...{last}.querySelectorAll(".js-fill")].filter(p => p.getAttribute("d")).length'
    assert browser.evaluate(filled) == 1
    click = f'{last}.parentElement.querySelector(".legend button").click()'
    browser.evaluate(f"{click}; new Promise(done => setTimeout(done, 300))")
    assert browser.evaluate(filled) == 0
    assert browser.errors == []


def test_the_reader_chooses_the_axis(reports, browser):
    browser.errors.clear()
    browser.open(reports["real"], 400)
    last = 'Math.max(...document.querySelectorAll(".canvas")[2].data[1].x)'
    assert browser.evaluate(last) == counterexample.QUICK
    browser.evaluate("""
        const select = document.querySelectorAll(".canvas")[2].parentElement.querySelector("select");
        select.value = "weak learners"; select.dispatchEvent(new Event("change"));
        new Promise(done => setTimeout(done, 300))""")
    assert browser.evaluate(last) == 2 * counterexample.QUICK - 1
    title = 'document.querySelectorAll(".canvas")[2].querySelector(".xtitle").textContent'
    assert browser.evaluate(title) == "weak learners"
    assert browser.errors == []


def test_names_are_text(reports, browser):
    browser.open(reports["made up"], 1200)
    names = '[...document.querySelectorAll(".legend button")].map(b => b.textContent)'
    assert HOSTILE in browser.evaluate(names)


def test_the_browser_would_tell(tmp_path, browser):
    """What the other tests look for is seen where it happens."""
    for body in (
        "<script>console.error('no')</script>",
        "<script>nothing()</script>",
        "<img src='http://127.0.0.1:9/x.png'>",
    ):
        browser.errors.clear()
        path = tmp_path / "page.html"
        path.write_text(f"<!DOCTYPE html>{body}<script>document.documentElement.dataset.drawn = 1</script>")
        with suppress(AssertionError):  # `open` stops at the first complaint
            browser.open(path, 400)
        browser.evaluate("new Promise(done => setTimeout(done, 500))")
        assert browser.errors, body
    assert "http://127.0.0.1:9/x.png" in browser.requests
    browser.errors.clear()
    wide = "<p style='width:500px'>wide"
    path.write_text(f"<!DOCTYPE html>{wide}<script>document.documentElement.dataset.drawn = 1</script>")
    browser.open(path, 400)
    assert browser.evaluate("document.scrollingElement.scrollWidth") > 400
