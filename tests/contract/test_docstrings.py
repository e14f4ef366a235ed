"""A docstring gets the type, range, choices and default of each parameter from the signature."""

from __future__ import annotations

import inspect
import sys

import pytest

import bagbasis
from bagbasis import datasets, hypotheses, models, operations
from bagbasis.core import (
    REQUIRED,
    Boolean,
    Fraction,
    Integer,
    ListOf,
    None_,
    OneOf,
    Open,
    Real,
    Seed,
    parameters_of,
    type_text,
)
from bagbasis.embeddings import EMBEDDINGS, RANDOM_FEATURES
from bagbasis.ingest import registry
from tests.contract.docstrings import shown_entries, source_entries

COMPONENTS = [
    *EMBEDDINGS.values(),
    *RANDOM_FEATURES.values(),
    *hypotheses.TWO_SAMPLE.own.values(),
    *hypotheses.INDEPENDENCE.own.values(),
    *hypotheses.FIT.own.values(),
    *registry.FORMATS.own.values(),
    *(kind for kind in datasets.DATASETS.own.values() if ".experiments." not in kind.__module__),
    bagbasis.DoubleBasisRegressor,
    bagbasis.DoubleBasisClassifier,
    bagbasis.TripleBasisRegressor,
    bagbasis.KernelSmoother,
    *(hypotheses.two_sample_test, hypotheses.independence_test, hypotheses.fit_test),
    *(operations.Window, operations.DriftGate, operations.Retraining, operations.drift_test),
    models.Search,
]


@pytest.mark.parametrize("thing", COMPONENTS, ids=lambda thing: thing.__name__)
def test_entries_have_types_and_defaults(thing):
    """Each parameter with a constraint in words has its type; each number and word its default."""
    shown = shown_entries(thing)
    wrong = []
    for name, parameter in parameters_of(thing).items():
        default = parameter.default
        is_typed = parameter.accepts and type_text(parameter.accepts, default)
        if is_typed and parameter.text and name not in shown:
            wrong.append(name)
        default = round(default, 4) if isinstance(default, float) else default
        literal = f'"{default}"' if isinstance(default, str) else f"{default}"
        if isinstance(default, (bool, int, float, str)) and name in shown:
            wrong += [] if f", default {literal}" in shown[name] else [f"{name} : {shown[name]}"]
    has_docstrings = sys.flags.optimize < 2
    assert not (wrong and has_docstrings), wrong


@pytest.mark.parametrize("thing", COMPONENTS, ids=lambda thing: thing.__name__)
def test_the_source_does_not_repeat_the_signature(thing):
    """An entry of the source has a type only in words that the signature does not say."""
    declared, repeated = parameters_of(thing), []
    for name, (words, _) in source_entries(thing).items():
        if name in declared and words:
            accepts, default = declared[name].accepts, declared[name].default
            is_copy = accepts and words == type_text(accepts, default)
            if is_copy or words.endswith((f", default {default}", f', default "{default}"')):
                repeated.append(f"{name} : {words}")
    assert not repeated


@pytest.mark.parametrize(
    "thing", [*filter(inspect.isclass, COMPONENTS)], ids=lambda thing: thing.__name__
)
def test_entries_of_a_base_are_not_written_again(thing):
    """A class inherits them; it writes an entry if it says something else."""
    for base in thing.__mro__[1:]:
        if base.__module__.startswith("bagbasis"):
            own, inherited = source_entries(thing), source_entries(base)
            assert not [name for name in own if own[name] == inherited.get(name)], base.__name__


@pytest.mark.parametrize(
    ("constraint", "default", "words"),
    [
        (Integer(1), 3, "int ≥ 1, default 3"),
        (Integer(2, 200_000, even=True), REQUIRED, "even int from 2 to 200,000"),
        (Integer(1) | None_, None, "int ≥ 1, optional"),
        (Integer(1) | None_ | OneOf("auto"), 10, 'int ≥ 1 or "auto" or None, default 10'),
        (Seed, 0, "int from 0 to 2^64 − 1, default 0"),
        (Fraction, 0.1, "float in (0, 1), default 0.1"),
        (Real(gt=0, le=4) | None_, None, "float in (0, 4], optional"),
        (Real(ge=1e-30, le=1e30), REQUIRED, "float from 1e-30 to 1e+30"),
        (OneOf("a", "b"), "a", '{"a", "b"}, default "a"'),
        (Boolean | Integer(1), True, "bool or int ≥ 1, default True"),
        (ListOf(Real(gt=0)) | None_, None, "list of float > 0, optional"),
        (ListOf(Real(gt=0)), (), "list of float > 0, optional"),
        (Real(gt=0), 1 / 6, "float > 0, default 0.1667"),
        (Open(), 1, None),
    ],
)
def test_words(constraint, default, words):
    """Each kind of constraint, with and without a default."""
    assert type_text(constraint, default) == words
