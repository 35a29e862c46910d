"""Every example runs by itself, and its last picture has a title with numbers that it has computed."""

import os
import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("plot_*.py"))
each_example = pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem.removeprefix("plot_"))


@pytest.fixture
def run(monkeypatch):
    """Return what runs a script, checks that the title of its last figure fits, and returns the title."""
    plt = pytest.importorskip("matplotlib.pyplot", reason="needs matplotlib: pip install convexboost[plot]")
    from matplotlib.text import Text

    pytest.importorskip("pandas", reason="needs pandas: pip install convexboost[cli]")
    plt.switch_backend("agg")
    monkeypatch.setattr(plt, "show", lambda: None)

    def title_of(path):
        with plt.rc_context():
            runpy.run_path(str(path))
        last = plt.figure(plt.get_fignums()[-1])
        titles = [ax.get_title(loc="left") for ax in last.axes]
        title = last.get_suptitle() or next(filter(None, titles), "")
        last.draw_without_rendering()
        for text in last.findobj(lambda artist: isinstance(artist, Text) and artist.get_text() == title):
            assert 0 <= text.get_window_extent().x0 < text.get_window_extent().x1 <= last.bbox.width, title
        return title

    yield title_of
    plt.close("all")


@each_example
@pytest.mark.one_in(9)
def test_it_runs_and_its_title_is_computed(path, run, capsys, monkeypatch, tmp_path):
    monkeypatch.delenv("CONVEXBOOST_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    title = run(path)
    assert title, "the last figure has its message as title"
    assert title not in path.read_text(), "the title has numbers or names that were computed"
    assert capsys.readouterr().out
    assert not list(tmp_path.iterdir()), "examples leave no files behind"


@pytest.mark.slow
def test_ranking_takes_real_queries_where_there_are_some(run):
    if not os.environ.get("CONVEXBOOST_DATA"):
        pytest.skip("set CONVEXBOOST_DATA to the folder with the data sets (mq2008/, ...)")
    assert "MQ2008" in run(ROOT / "examples" / "plot_ranking.py")


@each_example
def test_its_form_is_that_of_the_gallery(path):
    text = path.read_text()
    title, underline, empty, *_ = text.removeprefix('"""\n').splitlines()
    assert underline == "=" * len(title)
    assert empty == ""
    header, *cells = text.split("\n# %%\n")
    assert header.endswith('"""\n')
    assert len(cells) >= 3
    assert text.endswith("plt.show()\n")
    assert not re.search(r"^(?:from|import) style\b", text, re.M), "a downloaded script runs by itself"


def test_the_list_is_complete():
    listed = re.findall(r"<(plot_\w+)>", (ROOT / "examples" / "GALLERY_HEADER.txt").read_text())
    assert sorted(listed) == [path.stem for path in EXAMPLES]
