"""What pyproject.toml and CITATION.cff say about the package is true."""

import ast
import re
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest

import convexboost

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
#: Modules whose package has another name.
PACKAGES = {"sklearn": "scikit-learn"}
#: Of these the code makes an object only where users ask for it by name, and says what to install.
ON_REQUEST = {"shap"}
#: Left out of the extra `all` because of its size.
LARGE = {"torch"}


def packages(requirements):
    """Names of packages; dask[distributed] brings a package of that name."""
    text = " ".join(requirements)
    return set(re.findall(r"(?:^| )([\w-]+)", text)) | set(re.findall(r"\bdistributed\b", text))


@cache
def imported(part="**"):
    """Third-party modules that the code imports, at the top of a file or inside a function."""
    found = set()
    for path in (ROOT / "src" / "convexboost").glob(f"{part}/*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module]
            found |= {name.partition(".")[0] for name in names}
    found -= {*sys.stdlib_module_names, "convexboost"}
    return {PACKAGES.get(name, name) for name in found}


EXTRAS = {name: packages(given) for name, given in PROJECT["optional-dependencies"].items() if name != "all"}
REQUIRED = packages(PROJECT["dependencies"])


def test_every_import_is_declared():
    assert imported() - REQUIRED - ON_REQUEST <= set().union(*EXTRAS.values())


def test_every_dependency_is_imported():
    assert imported() >= REQUIRED


@pytest.mark.parametrize("extra", EXTRAS)
def test_an_extra_brings_what_the_code_imports(extra):
    assert EXTRAS[extra] <= imported()


def test_all_is_every_extra_but_the_large_one():
    (given,) = PROJECT["optional-dependencies"]["all"]
    named = re.fullmatch(r"convexboost\[([\w,]+)\]", given)[1].split(",")
    assert set(named) == set(EXTRAS) - LARGE


def test_the_command_line_needs_what_its_extra_brings():
    assert imported("cli") - REQUIRED <= EXTRAS["cli"] | EXTRAS["plot"]


def test_extras_that_messages_name_exist():
    named = set()
    for path in [*ROOT.glob("src/**/*.py"), *ROOT.glob("docs/**/*.md"), ROOT / "README.md"]:
        if "_build" not in path.parts:
            found = re.findall(r"(?:convexboost|\.)\[([a-z,]+)\]['\"]", path.read_text())
            named |= {extra for extras in found for extra in extras.split(",")}
    assert {"plot", "onnx", "all"} <= named <= {*EXTRAS, "all"}


def test_there_is_one_version():
    assert PROJECT["version"] == convexboost.__version__
    assert f"version: {convexboost.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    assert re.search(
        rf"^## {re.escape(convexboost.__version__)}\b", (ROOT / "CHANGELOG.md").read_text(), re.M
    )


def test_the_citation_names_the_software_and_the_paper():
    text = (ROOT / "CITATION.cff").read_text()
    assert text.startswith("cff-version: 1.2.0\n")
    assert "title: Generalized Boosting Algorithms for Convex Optimization" in text
    assert "family-names: Grubb" in text


def test_classifiers():
    minors = {f"Programming Language :: Python :: 3.{minor}" for minor in (11, 12, 13)}
    assert minors <= set(PROJECT["classifiers"])
    assert PROJECT["requires-python"] == ">=3.11"
    assert "Typing :: Typed" in PROJECT["classifiers"]
