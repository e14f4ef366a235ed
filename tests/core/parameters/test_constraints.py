"""What constraints accept, what they return, and what they say when they refuse."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
import pytest

from bagbasis import Bags, MomentsEmbedding, ParameterError
from bagbasis.core import (
    Boolean,
    Fraction,
    FractionOrZero,
    Function,
    Instance,
    Integer,
    Items,
    ListOf,
    MappingOf,
    None_,
    OneOf,
    Open,
    Pair,
    RandomSeed,
    Real,
    Seed,
    Text,
    TextList,
    Url,
    check_parameters,
    checked,
    constraints_of,
)

BAGS = Bags.from_list([np.zeros((2, 1))])
ACCEPTED = [
    (Integer(1), 3, 3),
    (Integer(0, 3), np.int32(3), 3),
    (Integer(even=True), 4, 4),
    (Integer(1) | None_, None, None),
    (Integer(1) | OneOf("auto") | None_, "auto", "auto"),
    (Real(), 1, 1.0),
    (Real(gt=0, lt=1), np.float32(0.5), 0.5),
    (Real(ge=0), 0, 0.0),
    (Real(gt=0, le=1), 1.0, 1.0),
    (Real(gt=0) | OneOf("median"), "median", "median"),
    (Fraction, 0.2, 0.2),
    (FractionOrZero, 0, 0.0),
    (Seed, 2**64 - 1, 2**64 - 1),
    (OneOf("a", "b"), np.str_("b"), "b"),
    (OneOf(1, 2), np.int64(2), 2),
    (Boolean, np.True_, True),
    (Text, np.str_("x"), "x"),
    (ListOf(Integer(1)), np.array([1, 2]), [1, 2]),
    (ListOf(Real()), (1, 2), (1.0, 2.0)),
    (ListOf(Text), {"a": 1}.keys(), ["a"]),
    (ListOf(Text), pd.DataFrame({"a": [1]}).columns, ["a"]),
    (ListOf(Text), pd.Series(["a"]), ["a"]),
    (Pair(Real(), Real()), [0, 1], [0.0, 1.0]),
    (MappingOf(Text, ListOf(Text)), {"a": ("b",)}, {"a": ("b",)}),
    (Boolean | Integer(1), 2, 2),
]
REFUSED = [
    (Integer(1), 0, "an integer ≥ 1"),
    (Integer(1), 2.0, "an integer ≥ 1"),
    (Integer(1), True, "an integer ≥ 1"),
    (Integer(1), np.True_, "an integer ≥ 1"),
    (Integer(1), np.timedelta64(2, "s"), "an integer ≥ 1"),
    (Integer(1, 3), 4, "an integer from 1 to 3"),
    (Integer(2, even=True), 3, "an even integer ≥ 2"),
    (Integer(), 1.5, "an integer"),
    (Integer(1) | OneOf("auto"), None, "an integer ≥ 1 or 'auto'"),
    (Integer(1) | None_ | OneOf("auto"), np.zeros(2), "an integer ≥ 1 or None or 'auto'"),
    (Real(), float("nan"), "a number"),
    (Real(ge=0), float("inf"), "a number ≥ 0"),
    (Real(ge=0), 10**400, "a number ≥ 0"),
    (Real(gt=0), 0, "a number > 0"),
    (Real(gt=0), True, "a number > 0"),
    (Real(gt=0), "1", "a number > 0"),
    (Real(gt=0, le=4), 5, "a number, 0 < n ≤ 4"),
    (Real(le=4), 5, "a number ≤ 4"),
    (Real(ge=0.5, lt=1), 1, "a number, 0.5 ≤ n < 1"),
    (Fraction, 0, "a fraction, 0 < n < 1"),
    (FractionOrZero, 1, "a fraction, 0 ≤ n < 1"),
    (Fraction, None, "a fraction, 0 < n < 1"),
    (Seed, -1, "an integer ≥ 0 and below 2^64"),
    (Seed, 2**64, "an integer ≥ 0 and below 2^64"),
    (Seed, 1.5, "an integer ≥ 0 and below 2^64"),
    (OneOf("a", "b"), "c", "one of ['a', 'b']"),
    (OneOf("a"), None, "'a'"),
    (OneOf("a"), ["a"], "'a'"),
    (OneOf(1, 2), True, "one of [1, 2]"),
    (OneOf(1, 2), 1.0, "one of [1, 2]"),
    (Boolean, 1, "True or False"),
    (None_, 0, "None"),
    (Text, b"x", "a string"),
    (Url, 1, "a URL or a path"),
    (Url, "", "a URL or a path"),
    (Function, 1, "a function"),
    (Items, np.array(1), "something to iterate over"),
    (Instance("Bags"), 1, "a Bags"),
    (Instance("Embedding"), Bags, "an Embedding"),
    (ListOf(Text), "ab", "a list of strings"),
    (ListOf(Text), {"a"}, "a list of strings"),
    (ListOf(Text), [1], "a list of strings"),
    (ListOf(Integer(1) | Text), [0], "a list of integers ≥ 1 or strings"),
    (ListOf(Integer(2, even=True), 2), [2], "a list of even integers ≥ 2 (2 or more)"),
    (ListOf(Pair(Real(), Real())), [[1]], "a list of pairs (a number, a number)"),
    (MappingOf(Text, Real(gt=0)), {"a": 0}, "a mapping from strings to numbers > 0"),
    (MappingOf(Open(), Open()), [], "a mapping"),
]


@pytest.mark.parametrize(("constraint", "value", "expected"), ACCEPTED)
def test_what_is_accepted_comes_back_as_a_plain_value(constraint, value, expected):
    result = constraint.check("n", value)
    assert result == expected
    assert type(result) is type(expected)
    assert constraint.accepts(value)


@pytest.mark.parametrize(
    ("constraint", "value", "hint"),
    [
        (Real(gt=0), "1", "1"),
        (Real(ge=0) | OneOf("auto"), " 0.1 ", "0.1"),
        (Real(gt=0), "-1", None),
        (Real(), "inf", None),
        (Real(), "one", None),
        (FractionOrZero, "10%", "0.1"),
        (Real(), "90 %", "0.9"),
        (Fraction, 5, "0.05"),
        (Fraction, "200%", None),
        (Instance("Bags"), Bags, "Bags()"),
        (Instance("Embedding"), MomentsEmbedding, "MomentsEmbedding()"),
        (Instance("Embedding"), Bags, None),
    ],
)
def test_what_a_value_was_meant_to_be(constraint, value, hint):
    """A number in a text, a percentage, or an instance of the class that was passed."""
    assert constraint.nearest(value) == ("" if hint is None else f" (did you mean {hint}?)")


@pytest.mark.parametrize(("constraint", "value", "expected"), REFUSED)
def test_a_refusal_names_parameter_value_and_expectation(constraint, value, expected):
    with pytest.raises(ParameterError) as refused:
        constraint.check("n", value)
    assert (
        str(refused.value) == f"n is {value!r}{constraint.nearest(value)}; expected {expected}"
        or len(repr(value)) > 80
    )
    assert str(refused.value).endswith(f"; expected {expected}")
    assert not constraint.accepts(value)


def test_what_is_not_ours_has_no_names_of_ours():
    """A class of somebody else with the same name is another one."""
    assert Instance("Bags").accepts(BAGS)
    assert not Instance("Bags").accepts(type("Bags", (), {})())


def test_a_long_value_is_cut():
    """A refusal shows at most 80 characters of what was given, and all of what is wanted."""
    with pytest.raises(ParameterError) as refused:
        Text.check("name", list(range(10**6, 10**6 + 50)))
    message = str(refused.value)
    assert message.startswith("name is [1000000, 1000001,")
    assert message.endswith("; expected a string")
    assert len(message) == len("name is ") + 80 + len("; expected a string")


def test_paths():
    """Urls are texts or paths, and stay as they are."""
    assert Url.check("url", Path("a")) == Path("a")


@checked
def repeat(n: Annotated[int, Integer(1)], names: TextList | None = None, *, more=3, **rest):
    return n, names, more, rest


def test_arguments_of_a_function():
    """They are checked wherever they stand, become plain, and others pass."""
    values = repeat(np.int64(2), names=("a",), more="x", other=1)
    assert values == (2, ("a",), "x", {"other": 1})
    assert type(values[0]) is int
    assert list(constraints_of(repeat)) == ["n", "names"]
    for call in (lambda: repeat(0), lambda: repeat(n=0), lambda: repeat(1, names=5)):
        with pytest.raises(ParameterError, match=r"^n(ames)? is .*; expected a"):
            call()


class Counter:
    def __init__(self, n: Annotated[int, Integer(1)], seed: RandomSeed = 0):
        self.n, self.seed = n, seed


def test_parameters_of_an_instance():
    """All that a constructor declares, as plain values; the first wrong one is named."""
    assert check_parameters(Counter(np.int64(3))) == {"n": 3, "seed": 0}
    with pytest.raises(ParameterError, match=r"^seed of the draws is -1; expected"):
        check_parameters(Counter(1, -1), "of the draws")


def test_tables_load_without_numpy():
    """What a config needs of the library is there before numpy is."""
    code = "import sys; from bagbasis.core import *; assert 'numpy' not in sys.modules, Text"
    subprocess.run([sys.executable, "-P", "-c", code], check=True)
