"""Checks of points in a matrix or table, for estimators of points instead of bags."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ...core.arrays import Floats, Integers, as_array, refuse_not_numbers
from ...core.containers import has_columns
from ...core.errors import DataError
from ...core.sklearn_bases import BaseEstimator, validated
from .coordinates import Names, order_of
from .frames import names_of_table, numbers_of_frame


def new_points(estimator: BaseEstimator, X: ArrayLike, **options: int) -> tuple[Floats, Names]:
    """Return the points that an estimator is fitted to, shape (n, d), and their names.

    Parameters
    ----------
    estimator : BaseEstimator
        Estimator whose ``n_features_in_`` is set.
    X : array_like or table, shape (n, d)
        A vector holds points in one dimension.
    **options
        Options of `sklearn.utils.validation.validate_data`.

    Raises
    ------
    DataError
        If values are not finite numbers, or there are too few points.
    """
    array = _numbers(points_in_order(X, None, "X", "")[0])
    points = validated(estimator, array[:, None] if array.ndim == 1 else array, **options)
    names = names_of_table(X)
    return points.astype(np.float64, copy=False), None if names is None else tuple(names)


def known_points(
    estimator: BaseEstimator, X: ArrayLike, names: Names, reference: str
) -> tuple[Floats, Integers | None]:
    """Return points for a fitted estimator, and the positions in ``X`` of the fitted coordinates.

    The positions are None unless a table has the fitted names in another order.

    Parameters
    ----------
    estimator : BaseEstimator
        Estimator with ``n_features_in_``.
    X : array_like or table, shape (n, d)
        A vector holds points in one dimension, if the estimator was fitted to such.
    names : sequence of str, optional
        Names of the fitted coordinates.
    reference : str
        Words about the fit in messages, as in "the density was fitted on".

    Raises
    ------
    DataError
        If names or the dimension differ, or values are not finite numbers.
    """
    array, order = points_in_order(X, names, "X", reference)
    array = _numbers(array)
    if array.ndim == 1 and getattr(estimator, "n_features_in_", None) == 1:
        array = array[:, None]
    points = validated(estimator, array, reset=False, ensure_min_samples=0)
    return points.astype(np.float64, copy=False), order


def points_in_order(
    X: ArrayLike, names: Names, what: str, reference: str, dtype: DTypeLike | None = None
) -> tuple[NDArray[Any], Integers | None]:
    """Return a matrix or table with its columns in the order of known names, and their positions.

    Parameters
    ----------
    X : array_like or table
    names : sequence of str, optional
        Known names. Without them, and for arrays, columns are not moved.
    what, reference : str
        Words about ``X`` and about the owner of the names in messages: "the density was fitted on".
    dtype : data type, optional
        Data type for arrays. Tables become float32 or float64.

    Raises
    ------
    DataError
        If names differ, or values are not numbers.
    """
    order = order_of(names_of_table(X), names, what, reference)
    array = numbers_of_frame(X, what) if has_columns(X) else as_array(what, X, dtype)
    return (array if order is None else np.take(array, order, axis=1)), order


def _numbers(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array unchanged; DataError for texts, dates, NaN and infinities."""
    refuse_not_numbers("X", array)
    if array.dtype.kind == "f" and array.ndim in (1, 2) and not np.isfinite(array).all():
        finite = np.isfinite(array.reshape(len(array), -1)).all(axis=1)
        raise DataError(f"X, row {int(np.argmin(finite))}: it holds NaN or infinity; leave it out")
    return array
