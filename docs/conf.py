"""Settings of Sphinx; the pages of `api/` are made here, from each package's ``__all__``."""

from __future__ import annotations

import inspect
import shutil
from importlib import import_module
from pathlib import Path
from types import ModuleType

from sphinx.application import Sphinx

import bagbasis

HERE, ROOT = Path(__file__).parent, Path(__file__).parents[1]
PACKAGES = sorted(
    file.parent.name
    for file in Path(bagbasis.__file__).parent.glob("*/__init__.py")
    if "\n__all__ = " in file.read_text()  # else people use no name of it
)

project, author, release = "bagbasis", "the bagbasis developers", bagbasis.__version__
extensions = [
    "sphinx.ext.autodoc",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
    "sphinx_copybutton",
]
# No intersphinx: it reads lists of other projects' names (objects.inv), which no package ships. So
# it would need the network at each build, and links would come and go with it.
exclude_patterns = ["tutorials/*"]
html_theme = "pydata_sphinx_theme"
html_theme_options = {
    "secondary_sidebar_items": ["page-toc"],
    "show_prev_next": False,
    "header_links_before_dropdown": 5,
    "navbar_persistent": ["search-button"],
}
# these pages have none below them, or name them in their tables
html_sidebars = {page.stem: [] for page in HERE.glob("*.md")}
html_static_path, html_css_files = ["static"], ["pages.css"]
html_title = "bagbasis"
copybutton_exclude = ".linenos, .gp, .go"
html_show_sourcelink = False
default_role = "code"
myst_heading_anchors = 3
# what scikit-learn and Python give to every class stands in their own pages
OTHERS = "BaseEstimator, ClassifierMixin, RegressorMixin, TransformerMixin, object, tuple, dict"
# the values of tables of parameters and of classes fill a page, and say nothing to a reader
OF_CLASSES = ["   :members:", f"   :inherited-members: {OTHERS}", "   :exclude-members: PARAMETERS"]
OF_DATA = ["   :no-value:"]
autodoc_typehints = "none"  # numpydoc says them
numpydoc_show_class_members = False
sphinx_gallery_conf = {
    "examples_dirs": "tutorials",
    "gallery_dirs": "gallery",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "min_reported_time": 1e9,
    "write_computation_times": False,
}


def _names(module: ModuleType) -> list[str]:
    """Return the public names of a module that `bagbasis` itself does not have."""
    shown = [one for one in module.__all__ if module is bagbasis or one not in bagbasis.__all__]
    return sorted(shown, key=str.lower)


def _page(module: ModuleType) -> str:
    """Return the page of a module: what it says of itself, and each of its public names."""
    name = module.__name__
    lines = [name, "=" * len(name), "", f".. automodule:: {name}", ""]
    for one in _names(module):
        value = getattr(module, one)
        kind = "class" if inspect.isclass(value) else "function" if callable(value) else "data"
        lines += [f".. auto{kind}:: {name}.{one}"]
        lines += OF_CLASSES if kind == "class" else OF_DATA if kind == "data" else []
        lines += [""]
    return "\n".join(lines)


def _write_pages(_: object) -> None:
    folder = HERE / "api"
    folder.mkdir(exist_ok=True)
    modules = [bagbasis, *(import_module(f"bagbasis.{package}") for package in PACKAGES)]
    names = [module.__name__ for module in modules if _names(module)]
    for name in names:
        text, file = _page(import_module(name)), folder / f"{name}.rst"
        if not file.exists() or file.read_text() != text:  # else all is read again
            file.write_text(text)
    tree = ["Public names", "============", "", ".. toctree::", "   :maxdepth: 1", ""]
    (folder / "index.rst").write_text("\n".join([*tree, *(f"   {name}" for name in names), ""]))


def _copy_pages(_: object) -> None:
    """Bring the pages that lie beside what they are about."""
    shutil.copy2(ROOT / "deploy" / "README.md", HERE / "deploying.md")
    shutil.copy2(ROOT / "CHANGELOG.md", HERE / "changes.md")
    results = ROOT / "jobs" / "experiments" / "results"
    ours = shutil.ignore_patterns("*.json", "*.py")
    shutil.copytree(results, HERE / "experiments", ignore=ours, dirs_exist_ok=True)


def _is_of_scikit_learn(_: object, kind: str, name: str, *more: object) -> bool | None:
    """Leave out the methods that scikit-learn makes, whose texts link into its own pages."""
    is_theirs = name in ("get_metadata_routing", "set_output") or (
        name.startswith("set_") and name.endswith("_request")
    )
    return True if is_theirs else None


def _escape(
    _: object, kind: str, name: str, value: object, options: object, lines: list[str]
) -> None:
    """Let |x| be an absolute value; to reStructuredText it is a name to be replaced."""
    lines[:] = [line if "``" in line else line.replace("|", "\\|") for line in lines]


def setup(app: Sphinx) -> None:
    """Make and bring pages before Sphinx looks for them; see to docstrings after numpydoc has."""
    app.connect("builder-inited", _write_pages, priority=100)
    app.connect("builder-inited", _copy_pages, priority=100)
    app.connect("autodoc-skip-member", _is_of_scikit_learn)
    app.connect("autodoc-process-docstring", _escape, priority=900)
