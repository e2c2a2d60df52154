"""The documentation site: `make docs` builds it offline from these pages, the docstrings and examples/gallery."""

import os
import re
import runpy
import sys
from pathlib import Path

import fairbits

os.environ.setdefault("OMP_NUM_THREADS", "1")
HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # of gallery_charts
project, author, release = "fairbits", "The fairbits authors", fairbits.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "numpydoc", "sphinx_gallery.gen_gallery"]
exclude_patterns = ["README.md", "gallery/*.py", "gallery/*.ipynb"]  # index.rst includes the first

html_theme = "pydata_sphinx_theme"
html_title = "fairbits"
html_theme_options = {
    "show_prev_next": False,
    "header_links_before_dropdown": 8,
    "secondary_sidebar_items": ["page-toc"],
}
html_show_sourcelink = False

myst_heading_anchors = 4
default_role = "py:obj"  # docstrings write `name`
autosummary_generate = False  # write_reference does
numpydoc_show_class_members = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "filename_pattern": "",
    "image_scrapers": ("gallery_charts.last_chart",),
    "reset_modules": (),
    "capture_repr": ("_repr_html_",),
    "download_all_examples": False,
    "write_computation_times": False,
}

# Pages that have others below them. Here, and not in the pages, which code hosts show as they are.
BELOW = {
    "quickstart": ["concepts", "first-mistakes"],
    "guide": ["methods", "correlation-remover", "extending"],
    "certificate": ["theory", "reproduction", "measured", "speed", "scale", "datasets"],
}
TOCTREE = "\n```{{toctree}}\n:hidden:\n\n{}\n```\n"
LISTED = "## {}\n\n{}\n\n```{{eval-rst}}\n.. autosummary::\n   :toctree:\n   :nosignatures:\n\n   {}\n```\n"
FUNCTION = "{0}\n{1}\n\n.. currentmodule:: {2}\n\n.. autofunction:: {0}\n"
CLASS = FUNCTION.replace("function", "class") + "   :members:\n   :inherited-members: BaseException, tuple\n"


def write_reference():
    """Write a page for each public name, and their list, from the modules that docs/api.md is made of."""
    api, seen = runpy.run_path(str(HERE.parent / "scripts" / "api_page.py")), set()
    lines = ["# Reference", "", "[All public names on one page](../api.md) shows their settings side by side.", ""]
    folder = HERE / "reference"
    folder.mkdir(exist_ok=True)
    for module, about in api["MODULES"].items():
        names = []
        for thing in api["new_things"](module, seen):
            name = thing.__name__
            names.append(f"{module}.{name}")
            text = (CLASS if isinstance(thing, type) else FUNCTION).format(name, "=" * len(name), module)
            write_if_new(folder / f"{module}.{name}.rst", text)
        lines.append(LISTED.format(module, about.replace("](", "](../"), "\n   ".join(names)))
    write_if_new(folder / "index.md", "\n".join([*lines, TOCTREE.format("../api")]))


def write_if_new(file, text):
    """Write a file whose text has changed: Sphinx reads newer files again."""
    if not file.exists() or file.read_text() != text:
        file.write_text(text)


def adapt_page(app, docname, source):
    """Append the list of the pages below a page, and lead its links to the gallery, and to downloads of records."""
    if "/" not in docname:
        pages = re.sub(r"\]\(\.\./examples/(gallery/\w+)\.py\)", r"](\1.rst)", source[0])
        source[0] = re.sub(r"\[([^]]+)\]\((\.\./[^)]+\.md)\)", r"{download}`\1 <\2>`", pages)
    if docname in BELOW:
        source[0] += TOCTREE.format("\n".join(BELOW[docname]))


def adapt_docstring(app, what, name, member, options, lines):
    """Escape the bars of p(y|x), which name substitutions, and begin what is said of a parameter on a line of its own.

    Our docstrings have a sentence where numpydoc expects a type.
    """
    text = "\n".join(line if line.lstrip().startswith(">>>") else line.replace("|", r"\|") for line in lines)
    lines[:] = re.sub(r"^((?:\*{0,2}\w+(?:, )?)+) : (?=\S)", r"\1\n    ", text, flags=re.MULTILINE).split("\n")


def skip_inherited(app, what, name, member, skip, options):
    """Leave out what a class has from scikit-learn or torch, which document it themselves."""
    home = getattr(getattr(member, "fget", member), "__module__", None) or "fairbits"
    return skip or not home.startswith("fairbits")


def setup(app):
    """Register what this file adds."""
    write_reference()
    app.connect("source-read", adapt_page)
    app.connect("autodoc-process-docstring", adapt_docstring, priority=400)  # before numpydoc
    app.connect("autodoc-skip-member", skip_inherited)
