"""Checks of parameters: what they return, and what they say when they refuse."""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis.core.errors import ParameterError, shown
from bagbasis.core.params import check_choice, check_integer, check_number

ACCEPTED = [
    (check_integer, (3,), {}, 3),
    (check_integer, (np.int32(3),), {"least": 0, "most": 3}, 3),
    (check_integer, (4,), {"even": True}, 4),
    (check_integer, (None,), {"other": (None,)}, None),
    (check_integer, ("auto",), {"other": (None, "auto")}, "auto"),
    (check_number, (1,), {}, 1.0),
    (check_number, (np.float32(0.5),), {"above": 0, "below": 1}, 0.5),
    (check_number, (0,), {"least": 0}, 0.0),
    (check_number, (1.0,), {"above": 0, "most": 1}, 1.0),
    (check_number, ("median",), {"above": 0, "other": ("median",)}, "median"),
    (check_choice, ("b",), {"choices": ("a", "b")}, "b"),
]
REFUSED = [
    (check_integer, 0, {}, "an integer ≥ 1"),
    (
        check_integer,
        np.timedelta64(2, "s"),
        {},
        "an integer ≥ 1",
    ),
    (check_integer, 2.0, {}, "an integer ≥ 1"),
    (check_integer, True, {}, "an integer ≥ 1"),
    (check_integer, np.True_, {}, "an integer ≥ 1"),
    (check_integer, 4, {"most": 3}, "an integer from 1 to 3"),
    (check_integer, 3, {"least": 2, "even": True}, "an even integer ≥ 2"),
    (check_integer, None, {"other": ("auto",)}, "an integer ≥ 1 or 'auto'"),
    (check_integer, np.zeros(2), {"other": (None, "auto")}, "an integer ≥ 1 or None or 'auto'"),
    (check_number, float("nan"), {}, "a number"),
    (check_number, float("inf"), {"least": 0}, "a number ≥ 0"),
    (check_number, 0, {"above": 0}, "a number > 0"),
    (check_number, True, {"above": 0}, "a number > 0"),
    (check_number, "1", {"above": 0}, "a number > 0"),
    (check_number, 5, {"above": 0, "most": 4}, "a number, 0 < n ≤ 4"),
    (check_number, 5, {"most": 4}, "a number ≤ 4"),
    (check_number, 1, {"least": 0.5, "below": 1}, "a number, 0.5 ≤ n < 1"),
    (check_choice, "c", {"choices": ("a", "b")}, "one of ['a', 'b']"),
    (check_choice, None, {"choices": ("a",)}, "one of ['a']"),
    (check_choice, ["a"], {"choices": ("a",)}, "one of ['a']"),
]


@pytest.mark.parametrize(("check", "values", "bounds", "expected"), ACCEPTED)
def test_what_is_accepted_comes_back_as_a_plain_value(check, values, bounds, expected):
    result = check("n", *values, **bounds)
    assert result == expected
    assert type(result) is type(expected)


@pytest.mark.parametrize(("check", "value", "bounds", "expected"), REFUSED)
def test_a_refusal_names_parameter_value_and_expectation(check, value, bounds, expected):
    with pytest.raises(ParameterError) as refused:
        check("n", value, **bounds)
    assert str(refused.value) == f"n is {value!r}; expected {expected}"


def test_arrays_in_messages_are_described():
    """Their numbers would hide what the message says: shape and type stand for them."""
    bags = [np.random.default_rng(0).random((20, 2)) for _ in range(3)]
    assert shown(bags[0]) == "<ndarray of shape (20, 2), float64>"
    assert shown(bags) == "[" + ", ".join(["<ndarray of shape (20, 2), float64>"] * 3) + "]"
    assert shown(np.float64(2.5)) == repr(np.float64(2.5))
