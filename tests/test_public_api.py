"""What users import: documented, listed, loaded when it is used, and free of private modules."""

from __future__ import annotations

import ast
import importlib
import json
import pkgutil
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from convexboost.registry import everything

ROOT = Path(__file__).parents[1]
PACKAGES = ["convexboost", "convexboost.boosting", "convexboost.learners", "convexboost.losses"]
#: Benchmarks that take the library apart: they replace or time single parts of it.
DISSECTING = {"ablation.py", "phases.py", "traffic.py", "transports.py"}


def imported_for_types(package):
    """The names under `if TYPE_CHECKING`, which is what type checkers see."""
    tree = ast.parse(Path(importlib.import_module(package).__file__).read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    return [alias.name for node in block.body for alias in node.names]


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_can_be_imported_and_is_documented(package):
    module = importlib.import_module(package)
    assert sorted(imported_for_types(package)) == sorted(module.__all__)
    assert len(set(module.__all__)) == len(module.__all__)
    for name in module.__all__:
        found = getattr(module, name)
        assert name.isupper() or found.__name__ == name
        assert found.__doc__
        assert vars(module)[name] is found  # found once, not searched again
        if package != "convexboost.losses":
            assert f"`{name}`" in module.__doc__


@pytest.mark.parametrize("package", ["convexboost.learners", "convexboost.losses"])
def test_everything_in_the_folder_is_public(package):
    module = importlib.import_module(package)
    assert {cls.__name__ for cls in everything(package).values()} <= set(module.__all__)
    for file in pkgutil.iter_modules(module.__path__):
        if not file.name.startswith("_"):
            names = {name.lower() for name in module.__all__}
            assert file.name.replace("_", "") in names or file.name == "finite"


@pytest.mark.parametrize("package", PACKAGES)
@pytest.mark.parametrize("name", ["Nonsense", "_private", "nonsense"])
def test_unknown_names(package, name):
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute '{name}'"):
        getattr(importlib.import_module(package), name)


#: What each package shows before any of its names is used.
SEEN = """
import importlib, json, pydoc, sys

found = {}
for package in sys.argv[1:]:
    module = importlib.import_module(package)
    used = sorted(set(module.__all__) & set(vars(module)))
    found[package] = {"used": used, "names": dir(module), "help": pydoc.plain(pydoc.render_doc(module))}
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def seen():
    """Ask a new process, the same for all packages: it takes long to begin."""
    command = [sys.executable, "-c", SEEN, *reversed(PACKAGES)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


@pytest.mark.parametrize("package", PACKAGES)
def test_names_are_seen_before_they_are_used(seen, package):
    """By dir(), tab completion and help(), in a new process."""
    module, found = importlib.import_module(package), seen[package]
    assert found["used"] == []
    assert set(module.__all__) <= set(found["names"])
    for name in module.__all__:
        assert re.search(rf"^    (class )?{name}(\(| = )", found["help"], re.M), name


def test_importing_is_cheap():
    """Neither the package nor its lists of names load NumPy, Numba or scikit-learn."""
    code = (
        "import sys, convexboost, convexboost.boosting, convexboost.learners, convexboost.losses;"
        "print([m for m in ('numpy', 'numba', 'scipy', 'sklearn') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def documents():
    files = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/*")]
    files += [path for path in ROOT.glob("benchmarks/*.py") if path.name not in DISSECTING]
    return [path for path in files if path.suffix in (".md", ".py") and path.name != "CHANGELOG.md"]


@pytest.mark.parametrize("path", documents(), ids=lambda path: str(path.relative_to(ROOT)))
def test_no_document_needs_a_private_module(path):
    text = path.read_text()
    assert re.findall(r"(?:from|import) +convexboost[\w.]*\._\w+.*", text) == []
    assert re.findall(r"from +convexboost[\w.]* +import +[^\n]*\b_\w+", text) == []


def test_the_estimators_may_import_no_learner_and_no_loss():
    """The contract in pyproject.toml names every file of the two folders."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    sources = ["convexboost.estimators"]
    rule = next(rule for rule in settings["contracts"] if rule.get("source_modules") == sources)
    forbidden = set(rule["forbidden_modules"])
    for package in ("convexboost.learners", "convexboost.losses"):
        files = pkgutil.iter_modules(importlib.import_module(package).__path__, f"{package}.")
        assert {file.name for file in files if f"{package}._" not in file.name} <= forbidden
