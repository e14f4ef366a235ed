"""scikit-learn's base classes with the types it lacks, its check of matrices, and its clones.

It has no annotations: to a type checker a class with one of its bases would have every attribute
there is, and ``model.fitt()`` would be no error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import Tags
from sklearn.utils.validation import validate_data

from .arrays import refuse_not_numbers
from .errors import DataError, ParameterError, shown

if TYPE_CHECKING:
    from typing import Self

    class BaseEstimator:
        """Parameters by name; `sklearn.base.BaseEstimator`."""

        def get_params(self, deep: bool = True) -> dict[str, Any]:
            """Return the constructor's parameters."""

        def __getstate__(self) -> dict[str, Any]:
            """Return what is pickled."""

        def __sklearn_tags__(self) -> Any:
            """Return what the estimator can do, for scikit-learn's tools."""

        _defaults: ClassVar[Mapping[str, Callable[[], Any]]]
        """What makes the estimator that a parameter's None stands for."""

        def set_params(self, **params: Any) -> Self:
            """Change parameters; returns the estimator."""

    class TransformerMixin:
        """`sklearn.base.TransformerMixin`."""

        def fit_transform(self, X: Any, y: Any = None) -> Any:
            """`fit`, then `transform` of the same."""

        def set_output(self, *, transform: str | None = None) -> Self:
            """Choose what `transform` returns: "default", "pandas" or "polars"."""

    class RegressorMixin:
        """`sklearn.base.RegressorMixin`."""

        def score(self, X: Any, y: Any = None, *, sample_weight: Any = None) -> float:
            """R² of the predictions."""

    class ClassifierMixin:
        """`sklearn.base.ClassifierMixin`."""

        def score(self, X: Any, y: Any = None, *, sample_weight: Any = None) -> float:
            """Fraction of the predictions that are right."""

else:
    from sklearn import base
    from sklearn.base import ClassifierMixin, RegressorMixin, TransformerMixin

    class BaseEstimator(base.BaseEstimator):
        """`sklearn.base.BaseEstimator` whose None stands for an estimator with parameters, too."""

        _defaults = {}  # noqa: RUF012 - typed above

        def set_params(self, **params):
            """Change parameters; ``embedding__n_per_dim=3`` also of the default embedding."""
            for key in list(params):
                name, nested, _ = key.partition("__")
                if nested and name in self._defaults:
                    component = params.get(name, getattr(self, name))
                    if component is None or (isinstance(component, str) and component == "auto"):
                        params[name] = self._defaults[name]()
                    elif not hasattr(component, "set_params"):
                        raise ParameterError(
                            f"{key}: {name} is {shown(component)}, without parameters"
                        )
            return super().set_params(**params)


def validated(estimator: BaseEstimator, X: ArrayLike, **options: Any) -> NDArray[Any]:
    """Return the matrix that scikit-learn's `validate_data` gives.

    Raises
    ------
    DataError
        If a value is refused.
    """
    refuse_not_numbers("X", X)
    try:
        with np.errstate(over="ignore"):  # beyond float32 it is infinite, and refused
            checked: NDArray[Any] = validate_data(estimator, X, **options)
            return checked
    except (TypeError, ValueError) as error:
        kind = MatrixTypeError if isinstance(error, TypeError) else DataError
        name = "y" if str(error).startswith("Input y ") else "X"
        if str(error).startswith(f"Input {name} contains NaN"):
            raise DataError(
                f"{name} contains NaN; fill the cells, or leave the rows out"
            ) from error
        raise kind(f"{name} cannot be used: {error}") from error


def validated_pair(
    estimator: BaseEstimator, X: ArrayLike, y: ArrayLike | None, **options: Any
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the matrix and the targets that scikit-learn's `validate_data` gives.

    Raises
    ------
    DataError
        If a value is refused.
    """
    refuse_not_numbers("y", y)
    rows, targets = validated(estimator, X, y=y, **options)
    return rows, targets


def of_bags(tags: Tags) -> Tags:
    """Return scikit-learn's tags of an estimator whose input are bags, no table with rows."""
    tags.input_tags.two_d_array = False
    return tags


class MatrixTypeError(DataError, TypeError):
    """A matrix of another kind; scikit-learn's own checks of estimators expect a TypeError."""


class UnfittedError(DataError, NotFittedError):
    """Nothing was fitted yet; scikit-learn's tools expect its own NotFittedError."""


_Estimator = TypeVar("_Estimator", bound=BaseEstimator)


def fresh(
    name: str, component: _Estimator | None, kind: type[Any], default: type[_Estimator]
) -> _Estimator:
    """Return an estimator's parameter as it was before any fit; ``default()`` for None.

    Raises
    ------
    ParameterError
        Another thing than a ``kind``: a name, a class, or a fitted spec.
    """
    if component is None:
        return default()
    if not isinstance(component, kind):
        made = f"{default.__name__}()"
        raise ParameterError(f"{name} is {shown(component)}; expected one such as {made}, or None")
    unfitted: _Estimator = clone(component)
    return unfitted


__all__ = [
    "BaseEstimator",
    "ClassifierMixin",
    "RegressorMixin",
    "TransformerMixin",
    "UnfittedError",
    "fresh",
    "of_bags",
    "validated",
    "validated_pair",
]
