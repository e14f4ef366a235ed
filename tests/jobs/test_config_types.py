"""The types of config keys are those of the declared parameters."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from pydantic import TypeAdapter, ValidationError

from bagbasis.core import (
    Boolean,
    False_,
    Fraction,
    FractionOrZero,
    Instance,
    Integer,
    ListOf,
    MappingOf,
    None_,
    OneOf,
    Real,
    Text,
    Url,
)
from bagbasis.core.config_errors import accepted_by
from bagbasis.embeddings.base import BOX
from bagbasis.jobs.configs.sections import EmbeddingSection, build
from bagbasis.jobs.configs.types import type_of


@pytest.mark.parametrize(
    ("constraint", "words"),
    [
        (Integer(1) | None_, "an integer >= 1 or null"),
        (None_ | Integer(1, 8), "an integer >= 1 and <= 8 or null"),
        (Integer(2, even=True), "an integer >= 2 and divisible by 2"),
        (Fraction, "a number > 0 and < 1"),
        (FractionOrZero, "a number >= 0 and < 1"),
        (Real(gt=0) | OneOf("median"), "a number > 0 or 'median'"),
        (OneOf("report", "refuse"), "'report' or 'refuse'"),
        (Boolean | Integer(1), "true or false or an integer >= 1"),
        (
            Real(ge=0) | ListOf(Real(ge=0), 1) | OneOf("gcv"),
            "a number >= 0, [a number >= 0, ...] or 'gcv'",
        ),
        (OneOf(1, 2) | None_, "1, 2 or null"),
        (BOX, "[[a number, a number], ...] or null"),
        (Url | ListOf(Url), "a string or [a string, ...]"),
        (MappingOf(Text, Real(gt=0)) | None_, "'key: value' lines or null"),
        (Instance("RandomFeatures") | None_ | False_, "False or null"),
        (Instance("RandomFeatures"), "any value"),
        (ListOf(Text, or_one=True) | None_, "a string, [a string, ...] or null"),
    ],
)
def test_types_of_constraints(constraint, words):
    """What a config accepts is what the constraint does, as far as YAML can say it."""
    assert accepted_by(type_of(constraint)) == words


@pytest.mark.parametrize("value", ["ab", ["ab"], [], 5, {"a": "b"}, None])
def test_one_item_stands_for_a_list_of_it(value):
    """Where both know lists; a text is never taken for its letters."""
    constraint = ListOf(Text | Integer() | MappingOf(Text, Text), or_one=True) | None_
    expected = value if value is None or isinstance(value, list) else [value]
    assert constraint.check("targets", value) == expected
    assert TypeAdapter(type_of(constraint)).validate_python(value, strict=True) == expected


@pytest.mark.parametrize("constraint", [OneOf(1, 2) | None_, Integer(1) | None_])
@pytest.mark.parametrize("value", [True, 1.0, "1"])
def test_what_equals_a_number_is_not_that_number(constraint, value):
    """`marginals: true` is a mistake, and not one embedding per coordinate."""
    adapter = TypeAdapter(type_of(constraint))
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
    with pytest.raises(ValidationError, match="does not have method='direct'"):
        section.validate_python({"name": "hdd", "method": "direct"})


OPTIMISED = """
from importlib.machinery import SourceFileLoader
whole = SourceFileLoader.get_code

def bare(loader, name):
    if not name.startswith("bagbasis"):
        return whole(loader, name)
    return compile(loader.get_data(loader.path), loader.path, "exec", optimize=2)

SourceFileLoader.get_code = bare
from bagbasis.jobs import cli
assert cli.__doc__ is None
cli.cli(["fit", "--help-all"], prog_name="bags")
"""


@pytest.mark.long
def test_help_without_docstrings():
    """python -OO drops docstrings, and the help of a job still has its keys and their ranges.

    Only modules of the library are read so: other packages would be compiled anew, too.
    """
    command = [sys.executable, "-P", "-c", OPTIMISED]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "model.embedding.n_per_dim" in printed
    assert "'clip', 'drop' or 'error'; default \"clip\"" in " ".join(printed.split())
