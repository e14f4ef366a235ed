"""Parameters that are read from the library's source are those of its classes."""

from __future__ import annotations

import inspect
import subprocess
import sys

import numpy as np
import pytest
from pydantic import TypeAdapter, ValidationError

import bagbasis
from bagbasis import neural, retraining, tuning
from bagbasis.bases import BASES
from bagbasis.config_errors import accepted_by
from bagbasis.embeddings.composed.union import JOINS
from bagbasis.embeddings.hdd_measures import TOTAL_MASS
from bagbasis.embeddings.histogram import MEASURES
from bagbasis.ingest.tables.bags import RULES
from bagbasis.jobs.configs.sections import EmbeddingSection, build
from bagbasis.jobs.configs.signatures import REQUIRED, parameters_of, registered
from bagbasis.jobs.configs.types import type_of
from bagbasis.parameters import (
    Boolean,
    False_,
    Instance,
    Integer,
    ListOf,
    MappingOf,
    None_,
    OneOf,
    Real,
    Share,
    ShareOrZero,
    Text,
    Url,
)
from bagbasis.parameters.embeddings import BOX
from bagbasis.parameters.tables import TABLES
from bagbasis.random_features.frequencies import SPECTRA
from bagbasis.random_features.kernel_profiles import KERNELS_OF_DISTANCES
from bagbasis.random_features.landmarks import LANDMARKS
from bagbasis.random_features.spectral_mixture import FAMILIES
from bagbasis.solvers.solver_choice import SOLVERS

CLASSES = [
    *[("", getattr(bagbasis, name)) for name in registered("EMBEDDINGS", "embeddings").values()],
    ("", bagbasis.RandomFourierFeatures),
    ("", bagbasis.LearnedFourierFeatures),
    ("", bagbasis.NystroemFeatures),
    ("", bagbasis.DoubleBasisRegressor),
    ("", bagbasis.DoubleBasisClassifier),
    ("", bagbasis.KernelSmoother),
    ("", bagbasis.TripleBasisRegressor),
    ("retraining", retraining.Retraining),
    ("retraining", retraining.Window),
    ("retraining", retraining.DriftGate),
    ("tuning", tuning.Search),
    ("neural", neural.SequenceRegressor),
    ("neural", neural.SequenceClassifier),
]


@pytest.mark.parametrize(("module", "kind"), CLASSES)
def test_names_and_defaults_are_those_of_the_class(module, kind):
    """What the source says is what the imported class takes."""
    read = parameters_of(kind.__name__, module)
    expected = inspect.signature(kind).parameters
    assert list(read) == list(expected)
    for name, parameter in read.items():
        if parameter.default is not REQUIRED:
            assert parameter.default == expected[name].default


@pytest.mark.parametrize(
    ("constraint", "words"),
    [
        (Integer(1) | None_, "an integer >= 1 or null"),
        (None_ | Integer(1, 8), "an integer >= 1 and <= 8 or null"),
        (Integer(2, even=True), "an integer >= 2 and divisible by 2"),
        (Share, "a number > 0 and < 1"),
        (ShareOrZero, "a number >= 0 and < 1"),
        (Real(gt=0) | OneOf("median"), "a number > 0 or 'median'"),
        (OneOf("report", "refuse"), "'report' or 'refuse'"),
        (Boolean | Integer(1), "true or false or an integer >= 1"),
        (
            Real(ge=0) | ListOf(Real(ge=0), 1) | OneOf("gcv"),
            "a number >= 0, [a number >= 0, ...] or 'gcv'",
        ),
        (OneOf(1, 2) | None_, "1, 2 or null"),
        (BOX, "[[a number, a number], ...] or null"),
        (Url | ListOf(Url), "a text or [a text, ...]"),
        (MappingOf(Text, Real(gt=0)) | None_, "'key: value' lines or null"),
        (Instance("RandomFeatures") | None_ | False_, "False or null"),
        (Instance("RandomFeatures"), "any value"),
    ],
)
def test_types_of_constraints(constraint, words):
    """What a config accepts is what the constraint does, as far as YAML can say it."""
    assert accepted_by(type_of(constraint)) == words


@pytest.mark.parametrize("constraint", [OneOf(1, 2) | None_, Integer(1) | None_])
@pytest.mark.parametrize("value", [True, 1.0, "1"])
def test_what_equals_a_number_is_not_that_number(constraint, value):
    """`marginals: true` is a mistake, and not one embedding per coordinate."""
    adapter = TypeAdapter(type_of(constraint))
    assert adapter.validate_python(1, strict=True) == 1
    with pytest.raises(ValidationError):
        adapter.validate_python(value, strict=True)


@pytest.mark.parametrize(("module", "kind"), CLASSES)
def test_each_parameter_has_a_constraint(module, kind):
    """A class's table has its constructor's parameters, and is the one that configs read."""
    assert TABLES[kind.__name__] is kind.PARAMETERS
    assert set(kind.PARAMETERS) == set(inspect.signature(kind).parameters)


def test_choices_are_those_of_the_code():
    """A word that a table admits is one that the code knows, and the other way round."""
    known = {
        ("HDDEmbedding", "distance"): TOTAL_MASS,
        ("HistogramEmbedding", "distance"): MEASURES,
        ("EmbeddingUnion", "join"): JOINS,
        ("ProjectionEmbedding", "basis"): BASES,
        ("MeanMapEmbedding", "kernel"): SPECTRA,
        ("NystroemFeatures", "kernel"): KERNELS_OF_DISTANCES,
        ("NystroemFeatures", "landmarks"): LANDMARKS,
        ("LearnedFourierFeatures", "covariance"): FAMILIES,
        ("DoubleBasisRegressor", "solver"): SOLVERS,
        ("TableIngest", "target_rules"): RULES,
    }
    for (name, parameter), choices in known.items():
        constraint = TABLES[name][parameter]
        assert all(constraint.accepts(one) or constraint.accepts({"a": one}) for one in choices)
        listed = [word for part in leaves_of(constraint) for word in getattr(part, "choices", ())]
        assert set(listed) <= set(choices)


def leaves_of(constraint):
    """The constraints of one value that a table's entry is made of."""
    if isinstance(constraint, MappingOf):
        return leaves_of(constraint.value)
    return [leaf for one in getattr(constraint, "members", ()) for leaf in leaves_of(one)] or [
        constraint
    ]


def test_wrong_values_are_refused_before_numpy_is_loaded():
    """A config is checked in the time that Python takes to start."""
    code = """
import sys
from bagbasis.jobs.cli import run_job
for wrong in ("n_per_dim=-5", "n_per_dim=no", "bandwidth=0", "out_of_box=keep", "marginals=0"):
    keys = ("data_url=a", "model_url=b", f"model.embedding.{wrong}")
    assert run_job("fit", None, keys) == 2, wrong
assert "numpy" not in sys.modules
"""
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True
    )
    first = done.stderr.splitlines()[0]
    assert "'model.embedding.n_per_dim' is -5; expected an integer >= 1, 'auto' or null" in first


def test_marginals_of_three_coordinates():
    """A section accepts the marginals that its embedding does: three of four coordinates too."""
    section = TypeAdapter(EmbeddingSection).validate_python(
        {"name": "projection", "n_per_dim": 4, "marginals": 3}, strict=True
    )
    bags = [np.random.default_rng(i).random((20, 4)) for i in range(3)]
    assert build(section).fit_transform(bags).shape == (3, 4 * 4**3)


def test_configs_of_versions_with_two_methods():
    """What `bags tune` wrote into best.yaml is read: one method, by the name it had."""
    section = TypeAdapter(EmbeddingSection)
    read = section.validate_python({"name": "hdd", "method": "fast", "n_integration": 2000})
    assert read == section.validate_python("js")
    with pytest.raises(ValidationError, match="does not have method: direct"):
        section.validate_python({"name": "hdd", "method": "direct"})


@pytest.mark.long
def test_help_without_docstrings():
    """python -OO drops docstrings, and the help of a job still says what its keys are."""
    command = [sys.executable, "-OO", "-P", "-m", "bagbasis.jobs", "fit", "--help"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "What becomes of points outside the box" in " ".join(printed.split())
