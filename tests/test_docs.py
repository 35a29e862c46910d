"""What the documents point at exists, and the README's Python runs."""

import re
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MAP = (ROOT / "docs" / "paper-map.md").read_text()


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
        "docs/paper-map.md",
        "docs/decisions.md",
        "docs/diagnosis.md",
        "docs/performance.md",
        "docs/theory.md",
        "CONTRIBUTING.md",
    ],
)
def test_links_and_files_exist(document):
    path = ROOT / document
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", path.read_text()):
        assert (path.parent / target).exists(), target


def test_the_code_in_the_readme_runs(capsys):
    names: dict[str, object] = {}
    first, second = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    exec(first, names)
    assert float(capsys.readouterr().out.split()[0]) > 0.99
    exec(textwrap.dedent(second), names)
    assert "above the optimum" in capsys.readouterr().out
