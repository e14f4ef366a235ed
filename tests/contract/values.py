"""Values that no parameter wants, and which of them a parameter leaves open.

`make test` tries four values per parameter, made from its declared constraint: one of a wrong type,
one below, one above and a wrong word; a tenth of the parameters, drawn by their names, is given
all of `JUNK`, too. `make test-long` gives each other parameter an eighth of it, drawn by its name:
each value is tried on more than two hundred parameters. `make test-fresh` draws another eighth.
"""

from __future__ import annotations

import collections.abc
import inspect
import os
import random
import types
from collections.abc import Collection
from datetime import UTC, date, datetime
from decimal import Decimal
from numbers import Integral, Real as RealNumber
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy.sparse import csr_array

from bagbasis.core import Constraint, Integer, Open, Real
from bagbasis.core.constraints import members_of

TENTH = 0.1  # of the parameters are given every value
EIGHTH = 1 / 8  # of the values are given to every other parameter in the long run
SEED = os.environ.get("TESTS_SEED", "")  # of what is drawn, in addition to the name
WHICH = pytest.mark.parametrize("which", ["four", pytest.param("all", marks=pytest.mark.long)])


class Foreign:
    """A class of somebody else, which may be called with anything."""

    def __init__(self, *values: object) -> None:
        self.values = values


JUNK: dict[str, Any] = {
    "None": None,
    "True": True,
    "text": "no such thing",
    "number in text": "1",
    "NUL": "z\x00",
    "empty text": "",
    "nobody's home": "~no-such-account/x",
    "bytes": b"x",
    "fraction": 1.5,
    "NaN": float("nan"),
    "infinity": float("inf"),
    "-1": -1,
    "0": 0,
    "10**9": 10**9,
    "2**63": 2**63,
    "2**64": 2**64,
    "1e308": 1e308,
    "complex": 1j,
    "empty list": [],
    "empty dict": {},
    "mixed list": [1, "a"],
    "ragged list": [[1.0], [1.0, 2.0]],
    "list of None": [None],
    "no axes": np.array("a"),
    "vector": np.array([1.0, 2.0]),
    "four axes": np.zeros((2, 2, 2, 2)),
    "NaNs": np.full((12, 2), np.nan),
    "masked": np.ma.masked_array(np.ones((12, 2)), mask=np.eye(12, 2)),
    "text array": np.array(["a", "b"]),
    "object texts": np.array(["a", None, "b"], dtype=object),
    "object numbers": np.array([1, 2.5, None], dtype=object),
    "mixed objects": np.array([1, "a", b"b"], dtype=object),
    "bytes array": np.array([b"a", b"\xff"]),
    "date": date(1600, 2, 29),
    "time with a zone": datetime(2024, 7, 1, tzinfo=UTC),
    "times": np.array(["1677-01-01", "NaT"], dtype="M8[s]"),
    "spans": np.array([1, 2], dtype="m8[s]"),
    "decimals": [Decimal("0.5"), Decimal("NaN")],
    "sparse": csr_array(np.eye(3)),
    "NA": pd.NA,
    "nullable": pd.array([1, None], "Int64"),
    "categories": pd.Categorical(["b", None], ["a", "b"], ordered=True),
    "nullable frame": pd.DataFrame({"bag": [1, 1], "u": pd.array([1, None], "Int64")}),
    "object frame": pd.DataFrame({"bag": [1, "a"], "u": [b"x", 2.5]}, dtype=object),
    "frame of times": pd.DataFrame({"bag": [1], "u": [pd.Timestamp("2024", tz="UTC")]}),
    "frame of periods": pd.DataFrame({"bag": pd.period_range("2024", periods=2), "u": [1, 2]}),
    "frame of intervals": pd.DataFrame({"bag": pd.interval_range(0, 2), "u": [1, 2]}),
    "complex frame": pd.DataFrame({"bag": [1], "u": [1j]}),
    "empty frame": pd.DataFrame({"bag": [], "u": []}),
    "frame without columns": pd.DataFrame(index=[1, 2]),
    "two of a name": pd.DataFrame([[1, 2.0, 3.0]], columns=["bag", "u", "u"]),
    "levels": pd.DataFrame([[2, 1.0]], columns=pd.MultiIndex.from_tuples([("bag", ""), ("u", 1)])),
    "empty batches": pa.table({"bag": pa.array([], pa.int64()), "u": pa.array([], pa.null())}),
    "null column": pa.table({"bag": [1, 1], "u": pa.nulls(2)}),
    "list views": pa.table(
        {"bag": [1, 2], "u": pa.array([[1.0], None], pa.list_view(pa.float64()))}
    ),
    "runs": pa.table({"bag": pa.RunEndEncodedArray.from_arrays([2], ["a"]), "u": [1.0, 2.0]}),
    "records": pa.table({"bag": [{"a": 1}], "u": [{"b": [1, None]}]}),
    "bytes columns": pa.table({"bag": [b"a", b"\xff"], "u": [b"1", b"2"]}),
    "object": object(),
    "class": Foreign,
}


def drawn_of(
    parameter: str, which: str, junk: Collection[str], four: Collection[str]
) -> Collection[str]:
    """Which of the names ``junk`` a parameter, by its full name, is given in this run.

    The short run gives all of them to a tenth of the parameters and ``four`` to the others; the
    long run gives the others an eighth.
    """
    draw = random.Random(SEED + parameter)
    if draw.random() < TENTH:
        return junk if which == "four" else []
    return four if which == "four" else [name for name in junk if draw.random() < EIGHTH]


def junk_for(parameter: str, constraint: Constraint[Any] | None, which: str) -> dict[str, Any]:
    """The values that a parameter is given in this run."""
    four = four_values(constraint)
    values = JUNK | four
    return {name: values[name] for name in drawn_of(parameter, which, JUNK, four)}


def four_values(constraint: Constraint[Any] | None) -> dict[str, Any]:
    """A wrong type, below, above, and a wrong word, as far as a constraint has such."""
    numbers = [
        item for item in members_of(constraint or Open()) if isinstance(item, (Integer, Real))
    ]
    below, above = (-1, 2**64) if not numbers else (below_of(numbers[0]), above_of(numbers[0]))
    word = JUNK["text"]
    return {"wrong type": JUNK["object"], "below": below, "above": above, "wrong word": word}


def below_of(item: Integer | Real) -> float:
    if isinstance(item, Real) and item.gt is not None:
        return item.gt
    return -(2**64) if item.ge is None else item.ge - 1


def above_of(item: Integer | Real) -> float:
    if isinstance(item, Real) and item.lt is not None:
        return item.lt
    largest = 2**64 if isinstance(item, Integer) else 10**400  # no float holds the latter
    return largest if item.le is None else 2 * abs(item.le) + 1


def is_open(constraint: Constraint[Any] | None, annotation: object, value: object) -> bool:
    """Whether a parameter may accept a value: where it is declared, the constraint says so."""
    if constraint is None or isinstance(constraint, Open):
        return leaves_open(annotation, value)
    return constraint.accepts(value)


def leaves_open(annotation: object, value: object) -> bool:
    """Whether a value may be accepted by what a parameter is annotated with.

    Where numpy's wide unions or ``object`` say nothing, every value may.
    """
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    members = get_args(annotation) if _is_union(annotation) else (annotation,)
    return any(_member_leaves_open(member, value) for member in members)


def _member_leaves_open(member: Any, value: object) -> bool:
    origin = get_origin(member)
    if member in (Any, object, inspect.Parameter.empty) or isinstance(member, (TypeVar, str)):
        return True
    if "numpy" in getattr(origin or member, "__module__", ""):
        return True
    if member in (None, types.NoneType):
        return value is None
    if origin is Literal:
        return any(
            value is item or (isinstance(value, str) and value == item) for item in member.__args__
        )
    if member is int:
        return isinstance(value, Integral) and not isinstance(value, bool)
    if member is float:
        return (
            isinstance(value, RealNumber) and not isinstance(value, bool) and abs(value) < 2**1024
        )
    if member is str:
        return isinstance(value, str)
    if origin is collections.abc.Callable:
        return callable(value)
    if getattr(origin or member, "_is_protocol", False):
        return False
    if origin is not None:
        return _container_leaves_open(origin, get_args(member), value)
    return not inspect.isclass(member) or isinstance(value, member)


def _container_leaves_open(origin: type, inner: tuple[Any, ...], value: object) -> bool:
    if isinstance(value, np.ndarray):
        return issubclass(origin, collections.abc.Iterable)
    if not isinstance(value, origin) or isinstance(value, (str, bytes)):
        return False
    if not isinstance(value, (list, tuple)):
        return True
    return all(leaves_open(inner[0], item) for item in value)


def _is_union(annotation: object) -> bool:
    return get_origin(annotation) in (Union, types.UnionType)


def annotations_of(function: Any) -> dict[str, Any]:
    """Return the annotation of each parameter, evaluated; ``object`` for those of type checkers."""
    function = inspect.unwrap(function)
    owner = function.__init__ if inspect.isclass(function) else function
    owner = inspect.unwrap(getattr(owner, "__func__", owner))
    space = vars(inspect.getmodule(function if inspect.isclass(function) else owner))
    by_name = {}
    for name, parameter in inspect.signature(function).parameters.items():
        text = parameter.annotation
        try:
            by_name[name] = eval(text, dict(space)) if isinstance(text, str) else text  # noqa: S307 - of our own source
        except NameError:
            by_name[name] = object
    return by_name
