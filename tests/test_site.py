"""The site: every public name has a page, and its links are checked."""

import importlib
import importlib.util
import pkgutil
import re
from pathlib import Path

import pytest

import convexboost

ROOT = Path(__file__).parents[1]
API = sorted((ROOT / "docs" / "api").glob("*.rst"))
#: Modules that say what they offer to the rest of the library; what users need of them is offered elsewhere.
INSIDE = {"convexboost.onnx", "convexboost.paper", "convexboost.persistence"}


def listed():
    """The objects that the pages name, with the name under which each has a page."""
    found = {}
    for page in API:
        module = None
        for line in page.read_text().splitlines():
            if line.startswith(".. currentmodule:: "):
                module = line.removeprefix(".. currentmodule:: ")
            elif module and (name := re.fullmatch(r"   ([A-Za-z_]\w*)", line)):
                found[f"{module}.{name[1]}"] = getattr(importlib.import_module(module), name[1])
    return found


def public_modules():
    yield "convexboost"
    for module in pkgutil.iter_modules(convexboost.__path__, "convexboost."):
        try:
            offered = hasattr(importlib.import_module(module.name), "__all__")
        except ModuleNotFoundError as missing:
            pytest.skip(f"needs {missing.name}")
        if offered and module.name not in INSIDE:
            yield module.name


def test_every_public_name_has_a_page():
    with_page = {id(thing) for thing in listed().values()}
    without = [
        f"{module}.{name}"
        for module in public_modules()
        for name in importlib.import_module(module).__all__
        if id(getattr(importlib.import_module(module), name)) not in with_page
    ]
    assert without == []


def test_no_object_has_two_pages():
    things = [id(thing) for thing in listed().values()]
    assert len(things) == len(set(things))


def test_what_has_a_page_is_public():
    for name in listed():
        module, _, last = name.rpartition(".")
        assert last in importlib.import_module(module).__all__, name


def test_every_page_of_the_api_is_in_its_index():
    index = (ROOT / "docs" / "api" / "index.rst").read_text()
    assert {page.stem for page in API} - {"index"} == set(re.findall(r"^   (\w+)$", index, re.M))


@pytest.fixture(scope="module")
def check_links():
    spec = importlib.util.spec_from_file_location("check_links", ROOT / "docs" / "check_links.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def site(folder, body):
    folder.joinpath("index.html").write_text(f"<h1 id='top'>A</h1>{body}")
    folder.joinpath("sub").mkdir()
    folder.joinpath("sub", "page.html").write_text("<p id='here'></p><a href='../index.html#top'>up</a>")
    return folder


@pytest.mark.parametrize(
    "body",
    [
        "<a href='#top'></a>",
        "<a href='sub/page.html#here'></a><a href='sub/page.html'></a>",
        "<a href='https://example.org/x'></a><a href='mailto:a@b.c'></a><img src='data:image/png;base64,'>",
    ],
)
def test_good_links(check_links, tmp_path, body):
    assert check_links.problems(site(tmp_path, body))[0] == []


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("<a href='#bottom'></a>", "index.html: there is no anchor #bottom"),
        ("<a href='sub/page.html#there'></a>", "index.html: there is no anchor sub/page.html#there"),
        ("<a href='sub/none.html'></a>", "index.html: there is no sub/none.html"),
        ("<img src='a.png'>", "index.html: there is no a.png"),
        ("<script src='//cdn.org/x.js'></script>", "index.html: loads //cdn.org/x.js from another host"),
    ],
)
def test_bad_links(check_links, tmp_path, body, said):
    assert check_links.problems(site(tmp_path, body))[0] == [said]


def test_hosts_are_named(check_links, tmp_path):
    assert check_links.problems(site(tmp_path, "<a href='https://example.org/x'></a>"))[1] == {"example.org"}


def test_fonts_of_other_hosts_are_found(check_links, tmp_path):
    site(tmp_path, "").joinpath("a.css").write_text("@font-face { src: url(https://fonts.org/a.woff) }")
    assert check_links.problems(tmp_path)[0] == ["a.css: loads https://fonts.org/a.woff from another host"]
