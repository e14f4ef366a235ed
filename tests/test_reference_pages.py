"""The pages of the reference name everything that is public, and are made without the network."""

from __future__ import annotations

import inspect
import re
import sys
import zlib
from pathlib import Path

import pytest
from numpydoc.docscrape import NumpyDocString
from sphinx.pycode import ModuleAnalyzer

from bagbasis.jobs.job import JOBS

DOCS = Path(__file__).parents[1] / "docs"


@pytest.fixture
def pages(tmp_path, monkeypatch):
    """Return the module that makes the pages, which writes them into an empty folder."""
    monkeypatch.syspath_prepend(str(DOCS))
    import reference_pages

    monkeypatch.setattr(reference_pages, "HERE", tmp_path)
    yield reference_pages
    sys.modules.pop("reference_pages")


@pytest.mark.long
def test_every_public_name_is_in_the_table_of_its_package(pages, tmp_path):
    """Once, so that it has one page; the overview leads to each package."""
    pages.write_api()
    overview = (tmp_path / "api/index.rst").read_text()
    for module in pages.modules():
        assert f"   {module.__name__}\n" in overview
        lines = (tmp_path / f"api/{module.__name__}.rst").read_text().splitlines()
        for name in pages.own_names(module):
            assert lines.count(f"   {name}") == 1, name


@pytest.mark.long
def test_every_public_class_and_function_says_what_to_see_also(pages):
    """Other public names, written so that Sphinx finds them: from another package in full."""
    public = {*pages.public_names().values()}
    faults = []
    for module in pages.modules():
        for name in pages.own_names(module):
            value = getattr(module, name)
            is_function = inspect.isfunction(value)
            if not is_function and not (inspect.isclass(value) and "bagbasis" in value.__module__):
                continue  # a constant or the name of a type, without a docstring of its own
            section = NumpyDocString(inspect.getdoc(value) or "")["See Also"]
            links = [link for links, _ in section for link, _ in links]
            places = {link: {link, f"{module.__name__}.{link}"} & public for link in links}
            unknown = [link for link, actual in places.items() if not actual]
            if not links or unknown or name in links:
                faults.append((module.__name__, name, unknown))
    assert not faults


@pytest.mark.long
def test_every_command_and_key_has_its_place(pages, tmp_path):
    """A page per command with its options, and one page with the keys of all jobs."""
    pages.write_commands()
    pages.write_configuration()
    keys = (tmp_path / "configuration.md").read_text()
    assert all(f"## {job}\n" in keys for job in JOBS)
    fit = (tmp_path / "commands/fit.md").read_text()
    assert "| `--set` |" in fit
    assert "| `holdout.groups` |" in fit
    assert (tmp_path / "commands/test-two-sample.md").exists()
    index = (tmp_path / "commands/index.md").read_text()
    assert all(f"({name}.md)" in index for name in ("fit", "test-two-sample", "models-add"))


@pytest.mark.long
def test_names_of_other_projects_do_not_hide_public_ones(pages, monkeypatch):
    """A word in code type leads to one page."""
    monkeypatch.setattr(pages, "HERE", DOCS)
    foreign = pages.foreign_names()
    assert foreign["GridSearchCV"] == "sklearn.model_selection.GridSearchCV"
    assert "load" not in foreign
    assert not foreign.keys() & pages.public_names().keys()


def test_inventories_of_other_projects_need_no_network(pages, tmp_path, monkeypatch):
    """Each is a list of names, as Sphinx reads them."""
    monkeypatch.setattr(pages, "HERE", DOCS)
    mapping = pages.write_inventories(tmp_path)
    assert {*mapping} == {"dask", "numpy", "pandas", "scikit-learn"}
    for url, file in mapping.values():
        assert url.startswith("https://")
        text = zlib.decompress(Path(file).read_bytes().split(b"zlib.\n", 1)[1]).decode()
        assert all(len(line.split()) == 5 for line in text.splitlines())


def _shown(value, hidden):
    """The documented members of a class that bagbasis defines, without the hidden ones."""
    shown = []
    for name in dir(value):
        homes = [item for item in value.__mro__ if name in vars(item)]
        is_routing = name.startswith("set_") and name.endswith("_request")
        if name.startswith("_") or name in hidden or is_routing or not homes:
            continue
        [home, *_] = homes
        member = vars(home)[name]
        is_value = not (callable(member) or hasattr(member, "__get__"))
        places = ModuleAnalyzer.for_module(home.__module__).find_attr_docs() if is_value else {}
        is_documented = (home.__qualname__, name) in places or not is_value
        if home.__module__.startswith("bagbasis") and is_documented:
            shown.append(name)
    return shown


@pytest.mark.long
def test_pages_of_classes_show_what_people_use(pages):
    """Each member on a page stands in its class's docstring, a page, a tutorial or an example.

    Others are not for people who use bagbasis: they are hidden, or an example is missing. Names
    that are hidden exist.
    """
    root = DOCS.parent
    made = ("changes", "configuration", "contributing", "deploying")
    files = [*DOCS.glob("*.md"), *DOCS.glob("how-to/*.md"), *DOCS.glob("tutorials/*.py")]
    texts = [file.read_text() for file in files if file.stem not in made]
    examples = [
        line
        for file in (root / "pipeline").rglob("*.py")
        for line in file.read_text().splitlines()
        if line.lstrip().startswith((">>> ", "... "))
    ]
    used = set(re.findall(r"[.`](\w+)", "\n".join(texts + examples)))
    unknown, known = [], {"": set()}
    for module in pages.modules():
        for name in pages.own_names(module):
            value = getattr(module, name)
            if not inspect.isclass(value) or not value.__module__.startswith("bagbasis"):
                continue
            hidden = pages.hidden_members(value)
            known.setdefault(value.__module__.split(".")[1], set()).update(dir(value))
            described = set(re.findall(r"\w+", value.__doc__ or ""))
            if name in pages.BASES:
                described.update(" ".join(pages.FOR_COMPONENTS.values()).split())
            names = [item for item in _shown(value, hidden) if item not in used | described]
            unknown += [f"{module.__name__}.{name}.{item}" for item in names]
    assert not unknown, "\n".join(unknown)
    for table in (pages.INTERNAL, pages.FOR_COMPONENTS):
        for package, names in table.items():
            assert not set(names.split()) - known[package], package


@pytest.mark.long
def test_constants_have_a_text(pages):
    """Public constants and names of types say what they are, not what Python's type is."""
    texts = pages.texts_of_data()
    for module in pages.modules():
        for name in pages.own_names(module):
            value = getattr(module, name)
            is_described = inspect.isfunction(value) or (
                inspect.isclass(value) and value.__module__.startswith("bagbasis")
            )
            assert is_described or texts[f"{module.__name__}.{name}"].endswith("."), name
