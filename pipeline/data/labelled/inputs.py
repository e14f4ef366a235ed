"""Turns the arguments of `fit` into `LabelledBags`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.arrays import as_array
from ...core.errors import DataError, ParameterError, plural, shown
from ..bags.alignment import has_index, responses_in_order
from ..bags.bags import Bags, BagsInMemory, Ragged, as_bags
from ..bags.responses import Responses, as_responses
from ..store.store import BagStore
from ..store.targets import as_numbers, check_integers, warn_of_blank
from .alignment import aligned
from .labelled import LabelledBags
from .labels import ResponseBags, Targets

BagsLike = BagStore | BagsInMemory
"""Bags in any form that callers may pass."""

LabelsLike = ArrayLike | Sequence[ArrayLike | None] | Responses | None
"""Labels of bags in memory: targets, or one response per bag."""


def with_targets(
    X: BagsLike | LabelledBags, y: LabelsLike = None, target: str | Sequence[str] | None = None
) -> tuple[LabelledBags, bool]:
    """Return the labelled bags given to `fit`, and whether their targets are one-dimensional.

    Raises
    ------
    DataError
        If there are no targets, their number is wrong, or the store lacks a name.
    ParameterError
        If y is given with a store, or target with bags in memory.
    """
    if isinstance(X, LabelledBags):
        if y is not None or target is not None:
            raise ParameterError("LabelledBags carry their labels: pass neither y nor target")
        return X, len(X.target_names) == 1
    if isinstance(X, BagStore):
        if y is not None:
            raise ParameterError("a BagStore carries its targets: pass target='name', not y")
        names = _names(X, target)
        X.target_columns(names)
        if X.n_bags == X.n_removed:
            raise DataError(f"{X.url}: no bags to fit")
        single = isinstance(target, str) or (target is None and len(names) == 1)
        return LabelledBags(X, Targets(names)), single
    if target is not None and not isinstance(X, (str, os.PathLike)):
        raise ParameterError(
            "target names a column of a BagStore, or of a groupby; pass y for other bags"
        )
    bags = as_bags(X)
    if len(bags) == 0:
        raise DataError("no bags to fit")
    if y is None:
        raise DataError("y is missing: give one target, or a row of targets, for each bag")
    return with_values(bags, y)


def with_values(data: Bags | BagStore, y: LabelsLike) -> tuple[LabelledBags, bool]:
    """Return bags with targets that are given, and whether these are one-dimensional.

    Raises
    ------
    DataError
        If the number of targets is wrong, they are not numbers, or an index has other ids than the
        bags (see `aligned`).
    """
    y = aligned(y, data, "y")
    values = as_targets(y)
    if values.ndim not in (1, 2) or len(values) != len(data) or values.size == 0:
        kind = f" (it is a {type(y).__name__})" if values.ndim == 0 else ""
        raise DataError(f"{unequal('y', values, len(data))}{kind}; give one label for each bag")
    if values.dtype.kind == "O":
        texts, advice = values, "expected numbers; for classes use DoubleBasisClassifier"
        values = as_numbers(values, "y", advice)
        warn_of_blank(texts, "y")
    check_numbers(values)
    labels = Targets(label_names(y), values.reshape(len(data), -1))
    return LabelledBags(data, labels), values.ndim == 1


def check_numbers(targets: NDArray[Any]) -> None:
    """Raise DataError for texts, times, complex numbers, records, and integers beyond 2^53."""
    check_integers(targets, "y:")
    kind, fields = targets.dtype.kind, targets.dtype.names
    if fields:
        raise DataError(
            f"y has the fields {shown(list(fields))}; give the numbers of one, y[{fields[-1]!r}], "
            "and leave out bags whose time to an event is censored"
        )
    if kind not in "iufb":
        hint = "; for classes use DoubleBasisClassifier" if kind in "OUST" else ""
        hint = ", such as the days since a date" if kind in "mM" else hint
        raise DataError(f"y has dtype {targets.dtype}; expected numbers{hint}")


def label_names(y: LabelsLike) -> tuple[str, ...]:
    """Return the name of a Series, or of each column of a table, of pandas, polars or Arrow.

    As for scikit-learn's ``feature_names_in_``, names are texts: labels without names, with
    numbers as names (pandas counts columns), or with a name twice give the empty tuple.
    """
    names = getattr(y, "column_names", getattr(y, "columns", None))
    names = [getattr(y, "name", None)] if names is None or callable(names) else list(names)
    are_names = all(isinstance(name, str) and name for name in names)
    return tuple(names) if are_names and len(set(names)) == len(names) else ()


def unequal(what: str, values: NDArray[Any], n_bags: int) -> str:
    """Return the message for a wrong number of values: "y has 59 values for 60 bags"."""
    if values.ndim == 1:
        return f"{what} has {len(values)} values for {n_bags} {plural('bag', n_bags)}"
    return f"{what} has shape {values.shape} for {n_bags} bags"


def as_targets(y: LabelsLike) -> NDArray[Any]:
    """Return targets of bags in memory as an array.

    Raises
    ------
    DataError
        If responses are given instead of targets, lists do not form an array, or tuples hold a flag
        next to numbers.
    """
    first = y[0] if isinstance(y, (list, tuple)) and len(y) else None
    flags = {isinstance(value, (bool, np.bool_)) for value in first} if type(first) is tuple else ()
    if len(flags) > 1:  # records of survival times, which would be fitted as two targets
        raise DataError(
            f"y has rows such as {shown(first)}, a flag next to numbers; give the numbers alone, "
            "and leave out bags whose time to an event is censored, or give an array of numbers "
            "with one column per target"
        )
    try:
        if not isinstance(y, Ragged):
            values = as_array("y", y)  # type: ignore[arg-type]  # refuses others
            if values.ndim != 3:
                is_odd = values.dtype.kind == "f" and values.dtype not in (np.float32, np.float64)
                return values.astype(np.float64) if is_odd else values
    except DataError:
        items = list(y) if isinstance(y, Sequence) else []
        if not any(isinstance(item, (np.ndarray, list, tuple)) for item in items):
            raise
    raise DataError(
        "y holds one array of points per bag: those are responses, not targets; fit a "
        "TripleBasisRegressor to them, or a KernelSmoother with responses="
    )


def with_responses(X: BagsLike | LabelledBags, responses: LabelsLike = None) -> LabelledBags:
    """Return the bags that `fit` was given, with their responses.

    Raises
    ------
    DataError
        If there are no bags or no responses, the number of responses is not the number of bags, or
        values are not finite numbers.
    ParameterError
        responses with a store.
    """
    if isinstance(X, LabelledBags):
        if responses is not None:
            raise ParameterError("LabelledBags carry their labels: pass no responses")
        return X
    if isinstance(X, BagStore):
        if responses is not None:
            raise ParameterError("a BagStore carries its responses: pass the store alone")
        if X.response_dims is None:
            raise DataError(f"{X.url}: holds no responses; create it with response_dims=")
        if X.n_response_points == 0 or X.n_bags == X.n_removed:
            raise DataError(f"{X.url}: no bag has a response")
        return LabelledBags(X, ResponseBags())
    bags = as_bags(X)
    if len(bags) == 0:
        raise DataError("no bags to fit")
    if responses is None:
        raise DataError("responses are missing: one (m_i, k) array a bag, None for a bag without")
    responses = _listed(aligned(responses, bags, "responses"))
    if isinstance(responses, Bags):
        responses = responses_in_order(responses, bags.bag_ids)
    checked = as_responses(responses, len(bags))  # type: ignore[arg-type]  # refuses others
    if checked.n_points == 0:
        raise DataError("no bag has a response")
    return LabelledBags(bags, ResponseBags(checked))


def _listed(responses: LabelsLike) -> LabelsLike:
    """Return a Series of responses as a list, with None for missing values of pandas."""
    if not has_index(responses):
        return responses
    if getattr(responses, "ndim", 1) != 1:
        raise DataError(
            "responses: a table of pandas has no array per bag; give a Series of arrays, or a list"
        )
    items = responses.tolist()  # type: ignore[union-attr]  # of a Series
    return [None if isinstance(item, float) and np.isnan(item) else item for item in items]


def _names(store: BagStore, target: str | Sequence[str] | None) -> tuple[str, ...]:
    if target is None:
        if not store.target_names:
            raise DataError(f"{store.url} has no targets; name them as targets of its ingest")
        if len(store.target_names) != 1:
            first = store.target_names[0]
            raise DataError(
                f"{store.url} has the targets {shown(list(store.target_names))}; say which, as "
                f"target={first}"
            )
        return store.target_names
    names = (target,) if isinstance(target, str) else tuple(target)
    if not names:
        raise DataError(f"target= is empty; {store.url} has {list(store.target_names)}")
    if len(set(names)) < len(names):
        raise DataError(f"target={shown(list(names))} names a target twice; name each one once")
    return names
