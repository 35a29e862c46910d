"""How the site is built: `make docs` writes it to docs/_build/html, warnings are errors."""

import re
from pathlib import Path

import convexboost

ROOT = Path(__file__).parents[1]

project = "convexboost"
author = "the convexboost developers"
copyright = author
version = release = convexboost.__version__

extensions = [
    "myst_parser",  # our Markdown
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "sphinx_design",  # cards and tabs
    "sphinx_copybutton",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",  # MathJax from the package instead of a CDN
    "sphinx_llms_txt",
]
exclude_patterns = ["_build", "_templates"]
templates_path = ["_templates"]
nitpicky = True

# Markdown
myst_enable_extensions = ["amsmath", "attrs_block", "attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4  # links such as theory.md#certificates

# API pages: docs/api lists the names, autosummary writes a page for each
default_role = "py:obj"  # `Tree` in a docstring is a link where there is such a page, else code
autosummary_generate = True
autosummary_ignore_module_all = False
autodoc_member_order = "groupwise"
toc_object_entries_show_parents = "hide"
autodoc_typehints = "none"  # numpydoc's sections say the types, in words
numpydoc_show_class_members = False  # the templates do
autodoc_default_options = {  # methods of scikit-learn, about metadata routing
    "exclude-members": "get_metadata_routing, set_fit_request, set_predict_request, set_score_request",
}
nitpick_ignore_regex = [
    ("py:obj", ".*"),  # the default role: most of these are code
    ("py:class", r"convexboost\.\w+\.\w+\.\w+"),  # types that are not public
]

# Gallery: every examples/plot_*.py is executed
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": False,
    "download_all_examples": False,
    "show_memory": False,
    "write_computation_times": False,
    "show_signature": False,
    "min_reported_time": 5,
    "matplotlib_animations": False,
}

for page in Path(__file__).parent.glob("auto_examples/plot_*.rst"):  # of an example that is no more
    if not (ROOT / "examples" / f"{page.stem}.py").exists():
        page.unlink()

# HTML
html_theme = "pydata_sphinx_theme"
html_title = "convexboost"
html_static_path = ["_static"]
html_css_files = ["convexboost.css"]
html_show_sourcelink = False
html_copy_source = True  # llms.txt is made of the sources
html_theme_options = {
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "header_links_before_dropdown": 7,
    "navbar_end": ["theme-switcher"],
    "footer_start": ["copyright"],
    "footer_end": ["theme-version"],
    "secondary_sidebar_items": ["page-toc"],
    "pygments_light_style": "tango",
    "pygments_dark_style": "github-dark",
}

llms_txt_uri_template = "{docname}.html"

# A prompt is not copied
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

EXAMPLES = {f"examples/{path.name}": f"auto_examples/{path.stem}.rst" for path in ROOT.glob("examples/*.py")}
PAGES = EXAMPLES | {
    "examples/README.md": "auto_examples/index.rst",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
}


def link_pages(app, where, source):
    """Links to files outside docs/ that have a page, such as ../examples/plot_cvar.py, lead to the page."""

    def page(found):
        return f"](/{PAGES[found[1]]}" if found[1] in PAGES else found[0]

    source[0] = re.sub(r"\]\((?:\.\./)*([\w./-]+)", page, source[0])


def docstring_as_rst(app, what, name, obj, options, lines):
    """In our docstrings |x| is an absolute value, not a substitution, and docs/theory.md is a page.

    Methods that come from scikit-learn refer to its pages, which are not here.
    """
    for i, line in enumerate(lines):
        if not line.lstrip().startswith(">>>"):
            line = re.sub(r":(?:ref|term|class|func):`~?([^`<]*\w) *(?:<.*?>)?`", r"\1", line)
            parts = line.split("`")
            parts[::2] = [part.replace("|", r"\|") for part in parts[::2]]
            lines[i] = re.sub(r"\bdocs/([\w/-]+)\.md\b", r":doc:`/\1`", "`".join(parts))


def find_name(app, env, node, content):
    """Let `Tree` in a docstring of another module lead to its page, if there is one object of this name."""
    if node["refdomain"] == "py" and node["reftype"] == "obj":
        python = env.domains["py"]
        kinds = {"class", "function", "exception"}
        found = {
            name
            for name, thing in python.objects.items()
            if thing.objtype in kinds and name.rsplit(".", 1)[-1] == node["reftarget"]
        }
        if len(found) == 1:
            where = node["refdoc"]
            return python.resolve_xref(env, where, app.builder, "obj", found.pop(), node, content)
    return None


def setup(app):
    """Connect the functions above to what Sphinx reads."""
    app.connect("source-read", link_pages)
    app.connect("include-read", lambda app, path, where, source: link_pages(app, where, source))
    app.connect("missing-reference", find_name)
    app.connect("autodoc-process-docstring", docstring_as_rst, priority=100)
