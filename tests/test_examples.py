"""The examples of docstrings run, and print what stands there."""

from __future__ import annotations

import doctest
import warnings
from importlib import import_module
from pathlib import Path

import pytest

import bagbasis

HOME = Path(bagbasis.__file__).parent
MODULES = sorted(
    ".".join(("bagbasis", *file.relative_to(HOME).with_suffix("").parts))
    for file in HOME.rglob("*.py")
    if ">>> " in file.read_text() and "experiments" not in file.parts
)
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name, tmp_path, monkeypatch, capsys):
    """In a folder of their own, in which they may make stores."""
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = doctest.testmod(import_module(name), optionflags=OPTIONS)
    assert result.attempted
    assert not result.failed, capsys.readouterr().out
