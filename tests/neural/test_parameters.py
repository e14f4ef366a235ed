"""Values that no parameter of a network wants are refused by name, before anything is compiled."""

from __future__ import annotations

import inspect
import sys

import numpy as np
import pytest

from bagbasis import BagbasisError, ParameterError, neural
from bagbasis.core import constraints_of
from tests.contract.docstrings import shown_entries
from tests.contract.values import four_values

ESTIMATORS = [name for name in neural.__all__ if isinstance(getattr(neural, name), type)]
BAGS = [np.zeros((3, 2))] * 4
LABELLED = ("Regressor", "Classifier")


@pytest.mark.parametrize("name", ESTIMATORS)
def test_junk_is_refused(name, monkeypatch):
    """Four values of each parameter, by `fit`, which does not begin."""
    kind = getattr(neural, name)

    def begin(*_):
        raise AssertionError("a network was made")

    monkeypatch.setattr(kind, "_network", begin)
    assert set(constraints_of(kind)) == set(inspect.signature(kind).parameters)
    for key, constraint in constraints_of(kind).items():
        for junk in four_values(constraint).values():
            if not constraint.accepts(junk):
                with pytest.raises(ParameterError, match=key):
                    kind(**{key: junk}).fit(BAGS)
    needs_labels = name.endswith(LABELLED) and not name.startswith("NextPoint")
    if needs_labels:
        with pytest.raises(BagbasisError, match="y is missing"):
            kind().fit(BAGS)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_docstrings_describe_every_parameter(name):
    """Entries of bases included; the types come from the signature."""
    kind = getattr(neural, name)
    has_docstrings = sys.flags.optimize < 2
    assert not has_docstrings or set(shown_entries(kind)) >= set(constraints_of(kind))


@pytest.mark.parametrize("name", ESTIMATORS)
def test_scikit_learn_conventions(name):
    """The constructor stores parameters; they are read and changed by name."""
    model = getattr(neural, name)(seed=3)
    assert model.get_params()["seed"] == 3
    assert model.set_params(seed=4).seed == 4
    assert not [key for key in vars(model) if key.endswith("_")]


@pytest.mark.parametrize("name", neural.__all__)
def test_without_the_extra_each_name_says_which(name, monkeypatch):
    """As where JAX is not installed: nothing but the use of the name fails."""

    def missing(*_):
        raise ModuleNotFoundError("No module named 'jax'", name="jax")

    monkeypatch.setattr("importlib.import_module", missing)
    monkeypatch.delitem(vars(neural), name, raising=False)
    with pytest.raises(BagbasisError, match=rf"{name}.*bagbasis\[neural\]"):
        getattr(neural, name)
