"""Settings of Sphinx; `reference_pages` makes the pages of the reference."""

from __future__ import annotations

import re
import shutil
import sys
from html import escape
from pathlib import Path
from typing import Any

import yaml
from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
from sphinx.util.docutils import SphinxDirective

import bagbasis
from bagbasis.data.bags.format_rules import FormatRules
from bagbasis.ingest.registry import FORMATS

HERE, ROOT = Path(__file__).parent, Path(__file__).parents[1]
sys.path.insert(0, str(HERE))
import reference_pages  # noqa: E402 - it lies next to this file
from pictures.concepts import draw_all  # noqa: E402 - as does this folder

project, author, release = "bagbasis", "the bagbasis developers", bagbasis.__version__
extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx.ext.viewcode",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
    "sphinx_copybutton",
]
exclude_patterns = ["tutorials/*"]
templates_path = ["templates"]
# Lists of names of other projects lie next to the pages, so that a build needs no network.
intersphinx_mapping = reference_pages.write_inventories(ROOT / "build" / "inventories")
html_theme = "pydata_sphinx_theme"
html_theme_options = {
    "secondary_sidebar_items": ["page-toc"],
    "show_prev_next": True,
    "header_links_before_dropdown": 6,
    "navigation_with_keys": False,
    "pygments_light_style": "tango",
    "pygments_dark_style": "github-dark",
    "navbar_persistent": ["search-button"],
    "show_toc_level": 2,
}
html_sidebars = {"index": [], "search": []}
html_static_path, html_css_files = ["static"], ["pages.css"]
html_favicon = "static/favicon.svg"
html_title = "bagbasis"
copybutton_exclude = ".linenos, .gp, .go"
html_show_sourcelink = False
default_role = "code"
smartquotes = False  # values in quotes can be copied
myst_heading_anchors = 3
# what scikit-learn and Python give to every class stands in their own pages
OTHERS = "BaseEstimator, ClassifierMixin, RegressorMixin, TransformerMixin, "
OTHERS += "Sequence, object, tuple, dict"
autosummary_generate = True
autosummary_context = {"other_classes": OTHERS, "left_out": reference_pages.left_out()}
autodoc_typehints = "none"  # numpydoc says them
numpydoc_show_class_members = False
toc_object_entries_show_parents = "hide"
viewcode_line_numbers = True
sphinx_gallery_conf = {
    "remove_config_comments": True,
    "examples_dirs": "tutorials",
    "gallery_dirs": "gallery",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "min_reported_time": 1e9,
    "ignore_repr_types": r"matplotlib\.(axes|text)",
    "within_subsection_order": "reference_pages.TutorialOrder",
    "write_computation_times": False,
    "backreferences_dir": "api/tutorials",
    "doc_module": ("bagbasis",),
    "prefer_full_module": (),
}
NAMES = reference_pages.foreign_names() | reference_pages.public_names()
PAGES = reference_pages.pages_of_names()
TEXTS = reference_pages.texts_of_data()


class PagesOf(SphinxDirective):
    """Lists the pages of the guide that name an object: ``.. pages-of:: bagbasis.Bags``."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return one paragraph, or nothing."""
        pages = PAGES.get(self.arguments[0])
        return self.parse_text_to_nodes(f"**Explained in:** {pages}") if pages else []


class KeepUnits(SphinxTransform):
    """Keeps a number and its unit on one line."""

    default_priority = 401
    UNIT = re.compile(r"(?<=\d) (?=(?:%|×|(?:ms|s|µs|MB|MiB|GiB)\b))")

    def apply(self, **options: object) -> None:
        """Replace blanks by no-break spaces, but for code."""
        for text in list(self.document.findall(nodes.Text)):
            parent = text.parent
            if not isinstance(parent, (nodes.literal, nodes.literal_block, nodes.raw)):
                joined = self.UNIT.sub("\N{NO-BREAK SPACE}", text)
                if joined != text:
                    parent.replace(text, nodes.Text(joined))


class LinkNames(SphinxTransform):
    """Makes a link to its page of each public name in code type."""

    default_priority = 400

    def apply(self, **options: object) -> None:
        """Wrap the names of this document, but not those in titles, links and signatures."""
        unwanted = (nodes.title, nodes.reference, addnodes.pending_xref, addnodes.desc_signature)
        for literal in list(self.document.findall(nodes.literal)):
            name = literal.astext().removesuffix("()").rpartition(".")[2]
            full = NAMES.get(name)
            is_whole = literal.astext().removesuffix("()") in (name, full)
            is_here = self.env.docname == f"api/objects/{full}"
            parent = literal.parent
            while parent is not None and not isinstance(parent, unwanted):
                parent = parent.parent
            if full is None or not is_whole or is_here or parent is not None:
                continue
            target = {"refdomain": "py", "reftype": "obj", "reftarget": full}
            link = addnodes.pending_xref("", refexplicit=True, refwarn=False, **target)
            literal.replace_self(link)
            link += literal


def _write_pages(_: object, config: object) -> None:
    reference_pages.write_api()
    reference_pages.write_commands()
    reference_pages.write_configuration()
    draw_all()


def _copy_pages(_: object, config: object) -> None:
    """Bring the pages that lie next to what they are about."""
    shutil.copy2(ROOT / "deploy" / "README.md", HERE / "deploying.md")
    shutil.copy2(ROOT / "CHANGELOG.md", HERE / "changes.md")
    contributing = (ROOT / "CONTRIBUTING.md").read_text().replace("](docs/", "](")
    (HERE / "contributing.md").write_text(contributing)
    results = ROOT / "jobs" / "experiments" / "results"
    ours = shutil.ignore_patterns("*.json", "*.py")
    shutil.copytree(results, HERE / "experiments", ignore=ours, dirs_exist_ok=True)


def _add_format_rules(_: object, page: str, source: list[str]) -> None:
    """Add what each format declares to the page about them."""
    if page == "formats":
        list(FORMATS)  # imports the modules that declare rules
        rules = sorted(FormatRules.ALL.items())
        source[0] += "".join(f"\n## {name}\n\n{first.section()}\n" for name, first in rules)


KEYWORDS = yaml.safe_load((HERE / "keywords.yaml").read_text())


def _add_keywords(_: object, page: str, source: list[str]) -> None:
    """Add the entries of the index that lead to a page."""
    if page in KEYWORDS:
        entries = ", ".join(f"! {keyword}" for keyword in KEYWORDS[page])
        source[0] = f"```{{index}} {entries}\n```\n\n{source[0]}"


def _is_of_scikit_learn(_: object, kind: str, name: str, *more: object) -> bool | None:
    """Leave out the methods that scikit-learn makes, whose texts link into its own pages."""
    is_theirs = name in ("get_metadata_routing", "set_output") or (
        name.startswith("set_") and name.endswith("_request")
    )
    return True if is_theirs else None


def _escape(
    _: object, kind: str, name: str, value: object, options: object, lines: list[str]
) -> None:
    """Let |x| be an absolute value, not a name to be replaced."""
    if kind == "data" and name in TEXTS:
        lines[:] = [TEXTS[name], ""]
    lines[:] = [line if "``" in line else line.replace("|", "\\|") for line in lines]


def _describe(
    _: object, page: str, template: object, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Let a page's first paragraph be what search engines show of it."""
    paragraph = next(doctree.findall(nodes.paragraph), None) if doctree else None
    if paragraph is not None and page != "index":  # which says it itself
        text = escape(" ".join(paragraph.astext().split())[:200])
        context["metatags"] += f'<meta name="description" content="{text}">'


def setup(app: Sphinx) -> None:
    """Make and bring pages before Sphinx looks for them; see to docstrings after numpydoc has."""
    app.add_transform(LinkNames)
    app.add_transform(KeepUnits)
    app.connect("html-page-context", _describe)
    app.add_directive("pages-of", PagesOf)
    app.connect("config-inited", _write_pages)  # before Sphinx looks for pages
    app.connect("config-inited", _copy_pages)
    app.connect("source-read", _add_format_rules)
    app.connect("source-read", _add_keywords)
    app.connect("autodoc-skip-member", _is_of_scikit_learn)
    app.connect("autodoc-process-docstring", _escape, priority=900)
