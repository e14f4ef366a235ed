"""Every public class and function has an example in its docstring, which runs and prints what
stands there."""

from __future__ import annotations

import doctest
import inspect
import pkgutil
import warnings
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path

import pytest

import bagbasis
from tests.networks import compiled_soon

HOME = Path(bagbasis.__file__).parent
MODULES = sorted(
    ".".join(("bagbasis", *file.relative_to(HOME).with_suffix("").parts))
    for file in HOME.rglob("*.py")
    if ">>> " in file.read_text() and "experiments" not in file.parts
)
PACKAGES = ["bagbasis"] + [
    f"bagbasis.{item.name}" for item in pkgutil.iter_modules(bagbasis.__path__) if item.ispkg
]
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.long] * (".neural." in name)) for name in MODULES],
)
def test_examples_run(name, tmp_path, monkeypatch, capsys):
    """Those of each docstring in a folder of their own, in which they may make stores."""
    runner = doctest.DocTestRunner(optionflags=OPTIONS)
    module = import_module(name)
    soon = compiled_soon() if ".neural." in name else nullcontext()
    with soon, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number, examples in enumerate(doctest.DocTestFinder().find(module, name)):
            (tmp_path / str(number)).mkdir()
            monkeypatch.chdir(tmp_path / str(number))
            runner.run(examples)
    assert runner.tries
    assert not runner.failures, capsys.readouterr().out


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_has_an_example(package):
    """But for constants and names of types, which have no docstrings of their own."""
    module = import_module(package)
    objects = {name: getattr(module, name) for name in getattr(module, "__all__", ())}
    missing = [
        name
        for name, value in objects.items()
        if inspect.isfunction(value) or (inspect.isclass(value) and value.__module__ != "typing")
        if ">>> " not in (value.__doc__ or "")
    ]
    assert not missing
