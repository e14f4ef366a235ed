"""A docstring says of each parameter what the signature does: type, range, choices and default."""

from __future__ import annotations

import inspect

import pytest

import bagbasis
from bagbasis import hypotheses, ingest, models, operations
from bagbasis.core import (
    Boolean,
    Fraction,
    Integer,
    ListOf,
    None_,
    OneOf,
    Open,
    Real,
    Seed,
    constraints_of,
)
from bagbasis.embeddings import EMBEDDINGS, RANDOM_FEATURES
from tests.contract.docstrings import MISSING, described, docstring_of, entries, written_entries

COMPONENTS = [
    *EMBEDDINGS.values(),
    *RANDOM_FEATURES.values(),
    bagbasis.DoubleBasisRegressor,
    bagbasis.DoubleBasisClassifier,
    bagbasis.TripleBasisRegressor,
    bagbasis.KernelSmoother,
    *(hypotheses.two_sample_test, hypotheses.independence_test, hypotheses.fit_test),
    ingest.TableIngest,
    *(operations.Window, operations.DriftGate, operations.Retraining),
    models.Search,
]


@pytest.mark.parametrize("thing", COMPONENTS, ids=lambda thing: thing.__name__)
def test_entries_say_what_the_signature_does(thing):
    """The first line of an entry is `described`, where that knows the words."""
    parameters, constraints = inspect.signature(thing).parameters, constraints_of(thing)
    wrong = []
    for names, message in entries(docstring_of(thing)):
        for key in names:
            if key not in constraints:
                continue
            wanted = described(constraints[key], parameters[key].default)
            if wanted is not None and message != wanted:
                wrong.append(f"{key} : {message}\n   {wanted}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    "thing", [*filter(inspect.isclass, COMPONENTS)], ids=lambda thing: thing.__name__
)
def test_entries_of_a_base_are_not_written_again(thing):
    """A class inherits them; it writes an entry if it says something else."""
    for base in thing.__mro__[1:]:
        if base.__module__.startswith("bagbasis"):
            assert not written_entries(thing) & written_entries(base), base.__name__


@pytest.mark.parametrize(
    ("constraint", "default", "words"),
    [
        (Integer(1), 3, "int ≥ 1, default 3"),
        (Integer(2, 200_000, even=True), MISSING, "even int from 2 to 200,000"),
        (Integer(1) | None_, None, "int ≥ 1, optional"),
        (Integer(1) | None_ | OneOf("auto"), 10, 'int ≥ 1 or "auto" or None, default 10'),
        (Seed, 0, "int from 0 to 2^64 − 1, default 0"),
        (Fraction, 0.1, "float in (0, 1), default 0.1"),
        (Real(gt=0, le=4) | None_, None, "float in (0, 4], optional"),
        (Real(ge=1e-30, le=1e30), MISSING, "float from 1e-30 to 1e+30"),
        (OneOf("a", "b"), "a", '{"a", "b"}, default "a"'),
        (Boolean | Integer(1), True, "bool or int ≥ 1, default True"),
        (ListOf(Real(gt=0)) | None_, None, "list of float > 0, optional"),
        (Open(), 1, None),
    ],
)
def test_words(constraint, default, words):
    """Each kind of constraint, with and without a default."""
    assert described(constraint, default) == words
