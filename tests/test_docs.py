"""What the documents point at exists.  (`test_pages.py` runs their Python.)"""

import re
from pathlib import Path

import pytest

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
        path
        for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "examples" / "README.md"]
        if path.name != "CHANGELOG.md"
    ],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_links_and_files_exist(document):
    for target in re.findall(r"(?:\]\(|src=\")(?!http)([^)#\"]+)[)\"]", document.read_text()):
        assert (document.parent / target).exists(), target


@pytest.mark.parametrize(
    "document",
    [*sorted(ROOT.glob("docs/*.md")), *sorted(ROOT.glob("docs/guide/*.md")), ROOT / "CONTRIBUTING.md"],
    ids=lambda p: p.name,
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


def test_the_page_about_losses_shows_the_real_file():
    file = "src/convexboost/losses/huber.py"
    assert f"```python\n{(ROOT / file).read_text()}```" in ADD_A_LOSS
    assert file in ADD_A_LOSS
