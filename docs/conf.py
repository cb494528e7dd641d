"""Sphinx: `make docs` builds the pages into docs/_build, and a warning is an error."""

import inspect
import re
from pathlib import Path
from typing import Any

import latex2mathml.converter
from docutils import nodes

import softstack
from softstack import viewer
from softstack.lab.reports import gallery, network_page

project = "softstack"
author = "The softstack authors"
release = softstack.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc"]
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "softstack"
html_static_path = ["_static"]
html_css_files = ["softstack.css"]
html_math_renderer = "mathml"
html_show_sphinx = html_show_copyright = False
default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
nitpicky = False


def fields(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """A NamedTuple's fields with the shapes that its source gives them, in place of "alias for field 0"."""
    if what == "class" and hasattr(thing, "_fields"):
        if lines and lines[0].startswith(f"{thing.__name__}("):
            lines.clear()  # generated, and the same as the signature
        for field, note in re.findall(
            r"^    (\w+): [^#\n]+#\s*(.+)$", inspect.getsource(thing), re.MULTILINE
        ):
            lines += ["", f"``{field}`` {note}", ""]


def mathml(self: Any, node: Any) -> None:
    """Browsers draw MathML by themselves: pages need no script and no network."""
    display = "block" if isinstance(node, nodes.math_block) else "inline"
    self.body.append(latex2mathml.converter.convert(node.astext(), display=display))
    raise nodes.SkipNode


def pages(app: Any, error: Exception | None) -> None:
    """The pages that run by themselves, beside those of the documentation, which link to them."""
    if error is None and app.builder.format == "html":
        texts = {"play.html": viewer.play(stamp=network_page.stamp()), "gallery.html": gallery.page()}
        for name, text in texts.items():
            (Path(app.outdir) / name).write_text(text, encoding="utf-8")


def setup(app: Any) -> None:
    app.connect("build-finished", pages)
    app.add_html_math_renderer("mathml", (mathml, None), (mathml, None))
    app.connect("autodoc-process-docstring", fields)
