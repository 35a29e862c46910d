"""The Python of every page runs, and prints what the page says.

One mechanism for README.md, CONTRIBUTING.md and everything under docs/ and examples/:

- The ```python blocks of a page run in order, in one namespace, in an empty folder.
- A ```text block after them holds what was printed since the last one.
- A comment right after a `print` (on its line, or on the lines below it) says what that `print` prints.
  Words in quotation marks are a part of it.
- "..." stands for anything.
- A block below a paragraph that begins with "*Not run:" is left out; the paragraph says why.
- Blocks in other languages are not run.

In docs/guide/, numbers with a decimal point or a percent sign must occur in a block, or the line must link to
the page that has the command.
"""

import ast
import io
import re
import sys
import textwrap
import tokenize
from contextlib import redirect_stdout
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from convexboost import check_loss

ROOT = Path(__file__).parents[1]
FENCE = re.compile(r"^( *)(`{3,})(\w*)[^\n]*\n(.*?)^\1\2$", re.M | re.S)
NOT_RUN = "*Not run:"
#: Pages that take longest: `make test-slow` runs them, `make test` looks up what they import.
SLOW = {
    "docs/distributed.md",
    "docs/guide/categories-and-missing-values.md",
    "docs/guide/fairness-and-tails.md",
    "docs/guide/glass-box.md",
    "docs/guide/learners-and-algorithms.md",
    "docs/guide/prediction-intervals.md",
}


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    language: str
    text: str
    line: int  #: of the page where the text begins
    is_run: bool


def blocks(page):
    """Return the fenced blocks of a page, in order."""
    text = page.read_text()
    found = []
    for fence in FENCE.finditer(text):
        paragraph = text[: fence.start()].rstrip().split("\n\n")[-1].strip()
        start = text.count("\n", 0, fence.start(4)) + 1
        is_run = fence[3] == "python" and not paragraph.startswith(NOT_RUN)
        found.append(Block(fence[3], textwrap.dedent(fence[4]), start, is_run))
    return found


PAGES = sorted(
    path
    for path in [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("examples/*.md"),
    ]
    if any(block.language == "python" for block in blocks(path))
)


def matches(said, printed):
    """Return whether `printed` is what a page says, up to white space; "..." stands for anything."""
    said = " ".join(said.split())
    quoted = re.fullmatch('"(.*)"', said)
    said = f"...{quoted[1]}..." if quoted else said
    pattern = ".*".join(map(re.escape, said.split("...")))
    return re.fullmatch(pattern, " ".join(printed.split()), re.S) is not None


def missing(tree):
    """Return a package that a block imports and that is not installed, or None."""
    for node in ast.walk(tree):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module] if isinstance(node, ast.ImportFrom) else []
        for name in names:
            package = name.split(".")[0]
            if find_spec(package) is None:
                return package
    return None


def is_print(statement):
    """Return whether a statement is a call of `print`."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "print"


def comment_after(statement, comments):
    """Return the comments on the last line of a statement and on the lines right below it, as one text."""
    said, line = comments.get(statement.end_lineno, (False, ""))[1], statement.end_lineno + 1
    while comments.get(line, (False, ""))[0]:
        said += " " + comments[line][1]
        line += 1
    return said.strip()


def run(page):
    """Run the blocks of a page, compare what they print, and return their names."""
    name = str(page.relative_to(ROOT))
    names = {"__name__": "page"}
    printed = ""
    for block in blocks(page):
        if block.language == "text":
            assert matches(block.text, printed), f"{name}:{block.line}\n{block.text}\nit printed\n{printed}"
            printed = ""
        if not block.is_run:
            continue
        tree = ast.parse(block.text)
        if package := missing(tree):
            pytest.skip(f"{name}, from line {block.line}: {package} is not installed")
        ast.increment_lineno(tree, block.line - 1)
        comments = {}  # by line of the page: whether the comment is alone there, and its text
        for token in tokenize.generate_tokens(io.StringIO(block.text).readline):
            if token.type == tokenize.COMMENT:
                alone = not token.line[: token.start[1]].strip()
                comments[token.start[0] + block.line - 1] = (alone, token.string.lstrip("# "))
        for statement in tree.body:
            out = io.StringIO()
            with redirect_stdout(out):
                exec(compile(ast.Module([statement], []), name, "exec"), names)
            said = comment_after(statement, comments) if is_print(statement) else ""
            if said:
                assert matches(said, out.getvalue()), f"{name}:{statement.lineno} printed {out.getvalue()!r}"
            else:
                printed += out.getvalue()
    return names


@pytest.fixture
def in_empty_folder(monkeypatch, tmp_path):
    """Change to an empty folder; no windows, and one thread, since the tests have workers enough."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "1")


def marked(page):
    """Return the page as a parameter, marked where it is slow."""
    name = str(page.relative_to(ROOT))
    return pytest.param(page, id=name, marks=[pytest.mark.slow] if name in SLOW else [])


@pytest.mark.usefixtures("in_empty_folder")
@pytest.mark.parametrize("page", [*map(marked, PAGES)])
def test_the_page_runs_and_prints_what_it_says(page):
    run(page)
    if plt := sys.modules.get("matplotlib.pyplot"):
        plt.close("all")


@pytest.mark.parametrize("name", sorted(SLOW))
def test_a_page_that_is_run_by_others_compiles_and_imports_what_there_is(name):
    found = [block for block in blocks(ROOT / name) if block.is_run]
    assert found
    for block in found:
        tree = ast.parse(block.text)
        compile(tree, name, "exec")
        imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
        for node in imports:
            if isinstance(node, ast.ImportFrom) or node.names[0].name.startswith("convexboost"):
                exec(compile(ast.Module([node], []), name, "exec"), {})


@pytest.mark.usefixtures("in_empty_folder")
def test_the_losses_in_the_readme_are_right():
    names = run(ROOT / "README.md")
    y = np.random.default_rng(0).normal(size=60)
    for loss in (names["late"].loss, names["worst_tenth"], names["both"]):
        check_loss(loss, y)


def test_no_page_is_forgotten():
    with_python = {
        path
        for path in ROOT.glob("**/*.md")
        if "```python" in path.read_text() and not any(part.startswith(".") for part in path.parts)
    }
    assert with_python == set(PAGES)


@pytest.mark.parametrize(
    "page", sorted(ROOT.glob("docs/**/*.md")), ids=lambda page: str(page.relative_to(ROOT))
)
def test_no_python_hides_in_an_indented_block(page):
    lines = FENCE.sub("", page.read_text()).splitlines()
    hidden = re.compile(r" {4}(print\(|import \w+$|from \w[\w.]* import |\w+ = \w+\(|model\.)")
    assert [line for line in lines if hidden.match(line)] == []


NUMBER = re.compile(r"(?<![\w.])\d[\d,]*\.\d+|\d[\d,.]*(?= ?%)")


@pytest.mark.parametrize("page", sorted(ROOT.glob("docs/guide/*.md")), ids=lambda page: page.name)
def test_the_numbers_of_the_guide_are_printed_there(page):
    """Rounded numbers count: a page that prints 0.8512 may speak of 0.85, and of 85 %."""
    code = "\n".join(block.text for block in blocks(page))
    shown = {float(number.replace(",", "")) for number in re.findall(r"\d[\d,]*(?:\.\d+)?", code)}
    for line in FENCE.sub("", page.read_text()).splitlines():
        if re.search(r"\]\([^)]*\.(md|py)", line):
            continue
        for number in NUMBER.findall(re.sub(r"`[^`]*`", "", line)):
            value, digits = float(number.replace(",", "")), len(number.partition(".")[2])
            rounded = {round(k, digits) for k in shown} | {round(100 * k, digits) for k in shown}
            assert value in rounded, f"{number} in {line!r}"


# -- the mechanism itself ------------------------------------------------------------------------------


def page_of(tmp_path, monkeypatch, text):
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text(textwrap.dedent(text).replace("'''", "```"))
    return page


@pytest.mark.parametrize(
    "text",
    [
        "'''python\na = 1\nprint(a)  # 1\n'''\n\n'''python\nprint(a + 1)\n'''\n\n'''text\n2\n'''\n",
        "'''python\nprint('a', 'b')\n# a\n# b\n'''\n",
        "'''python\nprint('seen: 17 rows')  # \"17 rows\"\n'''\n",
        "'''python\nprint('seen: 17 rows')  # seen: ... rows\n'''\n",
        "- a list\n\n  '''python\n  if True:\n      print(1)\n  '''\n\n  '''text\n  1\n  '''\n",
        "*Not run: it needs a cluster.*\n\n'''python\n1 / 0\n'''\n",
        "'''bash\nfalse\n'''\n",
        "'''python\nprint(1)\n\n# and now another thing\nb = 2\n'''\n",
    ],
)
def test_a_page_that_is_right_passes(tmp_path, monkeypatch, text):
    run(page_of(tmp_path, monkeypatch, text))


@pytest.mark.parametrize(
    "text",
    [
        "'''python\nprint(1)  # 2\n'''\n",
        "'''python\nprint(1)\n# 2\n'''\n",
        "'''python\nprint(1)\n# 1\n# 2\n'''\n",
        "'''python\nprint(1)\n'''\n\n'''text\n2\n'''\n",
        "'''python\nprint(1)\n'''\n\n'''text\n1\n2\n'''\n",
        "'''python\nprint('17 rows')  # \"18 rows\"\n'''\n",
        "'''python\na = 1\n'''\n\nAs text:\n\n'''text\n1\n'''\n",
    ],
)
def test_a_page_that_says_something_else_fails(tmp_path, monkeypatch, text):
    with pytest.raises(AssertionError):
        run(page_of(tmp_path, monkeypatch, text))


def test_a_page_that_raises_fails(tmp_path, monkeypatch):
    with pytest.raises(ZeroDivisionError):
        run(page_of(tmp_path, monkeypatch, "'''python\n1 / 0\n'''\n"))


def test_a_missing_package_skips_the_rest(tmp_path, monkeypatch):
    page = page_of(tmp_path, monkeypatch, "'''python\nimport no_such_package\n'''\n")
    with pytest.raises(pytest.skip.Exception, match="line 2: no_such_package is not installed"):
        run(page)
