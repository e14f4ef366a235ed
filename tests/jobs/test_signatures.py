"""Parameters that are read from the library's source are those of its classes."""

from __future__ import annotations

import inspect
import subprocess
import sys

import numpy as np
import pytest
from pydantic import TypeAdapter, ValidationError

import bagbasis
from bagbasis import retraining, tuning
from bagbasis.config_errors import accepted_by
from bagbasis.jobs.sections import EmbeddingSection, build
from bagbasis.jobs.signatures import REQUIRED, parameters_of, registered, type_of

CLASSES = [
    *[("", getattr(bagbasis, name)) for name in registered("EMBEDDINGS", "embeddings").values()],
    ("", bagbasis.RandomFourierFeatures),
    ("", bagbasis.LearnedFourierFeatures),
    ("", bagbasis.DoubleBasisRegressor),
    ("", bagbasis.TripleBasisRegressor),
    ("retraining", retraining.Retraining),
    ("retraining", retraining.Window),
    ("retraining", retraining.DriftGate),
    ("tuning", tuning.Search),
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
    ("text", "words"),
    [
        ("int ≥ 1, optional", "an integer >= 1 or null"),
        ("even int ≥ 2, default 2048", "an integer >= 2 and divisible by 2"),
        ("float in (0, 1)", "a number > 0 and < 1"),
        ("float in [0, 1)", "a number >= 0 and < 1"),
        ('float > 0 or "median"', "a number > 0 or 'median'"),
        ('{"report", "refuse"}', "'report' or 'refuse'"),
        ('float ≥ 0, list of float ≥ 0, "gcv" (default)', "a number >= 0, [a number >= 0, ...] or"),
        ("1 or 2, optional", "1, 2 or null"),
        ("sequence of (lo, hi), optional", "[[a number, a number], ...] or null"),
        ("`RandomFourierFeatures`, default with its defaults", "any value"),
    ],
)
def test_ranges_are_read_from_numpydoc(text, words):
    """The type of a numpydoc entry is what a config accepts."""
    assert accepted_by(type_of(text)).startswith(words)


@pytest.mark.parametrize("text", ["1 or 2, optional", "int ≥ 1, optional"])
@pytest.mark.parametrize("value", [True, 1.0, "1"])
def test_what_equals_a_number_is_not_that_number(text, value):
    """`marginals: true` is a mistake, and not one embedding per coordinate."""
    adapter = TypeAdapter(type_of(text))
    assert adapter.validate_python(1, strict=True) == 1
    with pytest.raises(ValidationError):
        adapter.validate_python(value, strict=True)


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


def test_help_without_docstrings():
    """python -OO drops docstrings, and the help of a job still says what its keys are."""
    command = [sys.executable, "-OO", "-P", "-m", "bagbasis.jobs", "fit", "--help"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "What becomes of points outside the box" in " ".join(printed.split())
