"""What the documents point at exists, and their Python runs and prints what they say."""

import re
import textwrap
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from convexboost import check_loss

ROOT = Path(__file__).parents[1]
MAP = (ROOT / "docs" / "paper-map.md").read_text()
ADD_A_LOSS = (ROOT / "docs" / "add-a-loss.md").read_text()


def references():
    """Pairs of test file and test name in the paper map; `::name` alone belongs to the file before it."""
    file = None
    for found in re.finditer(r"`([\w/]+\.py)?(?:::(test_\w+\*?))?`", MAP):
        file = found[1] or file
        if file and file.split("/")[-1].startswith("test_"):
            yield file, found[2]


@pytest.mark.parametrize(("file", "name"), sorted(set(references()), key=str))
def test_the_paper_map_names_tests_that_exist(file, name):
    text = (ROOT / "tests" / file).read_text()
    if name is not None:
        assert re.search(rf"def {name.removesuffix('*')}", text), (file, name)


def test_there_are_many_references():
    assert len(set(references())) > 30


@pytest.mark.parametrize(
    "document",
    [
        "README.md",
        "docs/architecture.md",
        "docs/command-line.md",
        "docs/paper-map.md",
        "docs/decisions.md",
        "docs/diagnosis.md",
        "docs/explain.md",
        "docs/generalisation.md",
        "docs/model-file.md",
        "docs/serving.md",
        "docs/parameters.md",
        "docs/performance.md",
        "docs/theory.md",
        "docs/add-a-loss.md",
        "examples/README.md",
        "CONTRIBUTING.md",
    ],
)
def test_links_and_files_exist(document):
    path = ROOT / document
    for target in re.findall(r"(?:\]\(|src=\")(?!http)([^)#\"]+)[)\"]", path.read_text()):
        assert (path.parent / target).exists(), target


@pytest.mark.parametrize(
    "document", [*sorted(ROOT.glob("docs/*.md")), ROOT / "CONTRIBUTING.md"], ids=lambda p: p.name
)
def test_the_python_files_that_are_named_exist(document):
    """A bare name may be that of a file in any folder."""
    homes = [ROOT, ROOT / "src", ROOT / "src" / "convexboost", ROOT / "tests"]
    for name in set(re.findall(r"`([\w/]+\.py)(?:::\w+\*?)?`", document.read_text())):
        found = any((home / name).is_file() for home in homes)
        if "/" not in name:
            found = found or any(path for home in homes[1:] for path in home.rglob(name))
        assert found, name


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 80


def test_the_code_in_the_readme_runs(capsys):
    names: dict[str, object] = {}
    first, own, second = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    exec(first, names)
    assert capsys.readouterr().out.strip() == first.split("\n# ")[1].strip()
    exec(textwrap.dedent(own), names)
    y = np.random.default_rng(0).normal(size=60)
    for loss in (names["late"].loss, names["worst_tenth"], names["both"]):
        check_loss(loss, y)
    exec(textwrap.dedent(second), names)
    assert re.search("No model gets below .*, so it is at most .* above the optimum", capsys.readouterr().out)


@pytest.mark.parametrize("page", ["add-a-loss", "explain", "resuming"])
def test_pages_run_and_print_what_they_say(page, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": page.replace("-", "_")}
    printed = ""
    for language, block in re.findall(r"```(\w+)\n(.*?)```", (ROOT / f"docs/{page}.md").read_text(), re.S):
        if language == "text":
            assert block.split() == printed.split()
        elif "import torch" not in block or find_spec("torch"):
            exec(block, names)
            printed = capsys.readouterr().out


@pytest.mark.parametrize(
    ("page", "needed"),
    [("model-file.md", ["pandas", "skops"]), ("serving.md", ["pandas", "onnx", "onnxruntime"])],
)
def test_the_pages_about_files_run_and_print_what_they_say(page, needed, capsys, monkeypatch, tmp_path):
    for name in needed:
        pytest.importorskip(name)
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "page"}
    printed = ""
    for language, block in re.findall(r"```(\w+)\n(.*?)```", (ROOT / "docs" / page).read_text(), re.S):
        if language == "text":
            assert block.split() == printed.split()
        else:
            exec(block, names)
            printed = capsys.readouterr().out


def test_the_page_about_losses_shows_the_real_file():
    file = "src/convexboost/losses/huber.py"
    assert f"```python\n{(ROOT / file).read_text()}```" in ADD_A_LOSS
    assert file in ADD_A_LOSS
