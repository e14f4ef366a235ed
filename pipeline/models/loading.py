"""`load_model`: loads a saved estimator of any kind."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..core import UrlOrPath, checked, constraints_of
from ..core.errors import ModelError, refuse_exhaustion
from ..core.saved import newer_error
from ..data.storage.files import GROUP_FILE
from ..data.storage.folders import read_one
from ..data.storage.urls import normalize_url
from .base import DoubleBasis, fit_parameters_of
from .classifier import DoubleBasisClassifier
from .fitted_model import check_report
from .model_state import ModelState
from .regressor import DoubleBasisRegressor
from .ridge_model import RidgeModel
from .saving import (
    VERSIONS,
    params_from_dict,
    read_model_arrays,
    read_model_state,
    state_of,
)
from .triple_basis import TripleBasisRegressor

NETWORK = "network"  # the item of a saved model that only networks have
LEAF_NAME = "leaf{:03d}"  # the arrays of a saved network, in their order
_ESTIMATORS: dict[str, type[DoubleBasis]] = {
    kind.__name__: kind
    for kind in (DoubleBasisRegressor, DoubleBasisClassifier, TripleBasisRegressor)
}


@checked
def load_model(url: UrlOrPath) -> DoubleBasis:
    """Load a saved `DoubleBasisRegressor`, `DoubleBasisClassifier` or `TripleBasisRegressor`.

    Loading runs no code from the file. If the model is being replaced at the same time, the old or
    the new model is returned, never a mixture.

    Raises
    ------
    ModelError
        If no model exists at ``url``, or it is damaged or of an unsupported format version.

    See Also
    --------
    bagbasis.operations.Registry : Keeps models, and which one is in use.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(0.5, 2.0, 80)
    >>> X = [rng.normal(0, s, (30, 2)) for s in y]
    >>> from bagbasis import DoubleBasisRegressor, load_model
    >>> DoubleBasisRegressor('moments').fit(X, y).save('model.zarr')
    >>> model = load_model('model.zarr')
    >>> model.predict(X[:2]).shape
    (2,)
    """
    url = normalize_url(url)
    return read_one(url, lambda: _load(url), last=GROUP_FILE)


class PythonFunction:
    """Prediction function for MLflow: bags are given as lists, arrays or a frame."""

    def __init__(self, model: Predicting) -> None:
        self._model = model

    def predict(self, model_input: Any, params: object = None) -> NDArray[Any]:  # noqa: ANN401
        """Return the predictions of bags: a list of arrays, or a frame with a column ``bag``."""
        bags = model_input["bag"] if hasattr(model_input, "columns") else model_input
        arrays = [np.asarray([*bag], dtype=float) for bag in bags]
        predicted: NDArray[Any] = self._model.predict(arrays)
        return predicted


class Predicting(Protocol):
    """A fitted estimator of numbers or classes."""

    def predict(self, X: list[NDArray[np.float64]]) -> Any:  # noqa: ANN401
        """Return the predictions, one row per bag."""
        ...


def is_network(url: str | os.PathLike[str]) -> bool:
    """Return whether a saved model is a network, which `bagbasis.neural.load_network` reads.

    Raises
    ------
    ModelError
        If no model exists at ``url``, or it is of an unsupported format version.
    """
    url = normalize_url(url)
    return NETWORK in read_one(url, lambda: read_model_state(url), last=GROUP_FILE)


def read_network(url: str, values: Mapping[str, Any]) -> list[NDArray[np.float64]]:
    """Return the arrays of a saved network in their order; ``values`` is its state.

    The packages that run networks are not needed.

    Raises
    ------
    ModelError
        If the network is damaged.
    """
    try:
        names = [LEAF_NAME.format(i) for i in range(values["n_arrays"])]
        arrays = list(read_model_arrays(url, names).values())
        if any(np.isnan(array).any() for array in arrays):
            raise ValueError("a chunk of its arrays is missing")
    except Exception as error:  # whatever a damaged file leads to
        refuse_exhaustion(url, error)
        raise unreadable(url, values, error) from newer_error(error, values) or error
    return arrays


def saved_state(url: str | os.PathLike[str]) -> tuple[ModelState, dict[str, str]]:
    """Return the complete state of a saved model of any kind, and the versions that saved it.

    Raises
    ------
    ModelError
        If no model exists at ``url``, or it is damaged or of an unsupported format version.
    """
    url = normalize_url(url)
    return read_one(url, lambda: _saved_state(url), last=GROUP_FILE)


def _saved_state(url: str) -> tuple[ModelState, dict[str, str]]:
    values = read_model_state(url)
    if NETWORK not in values:
        model = _made(url, values)
        return state_of(model), model.versions_
    arrays = read_network(url, values)
    versions = dict(values.pop(VERSIONS))
    named = {LEAF_NAME.format(i): array for i, array in enumerate(arrays)}
    return ModelState(values, named), versions


def _load(url: str) -> DoubleBasis:
    values = read_model_state(url)
    if NETWORK in values:
        raise ModelError(
            f"{url}: is a network, {values.get('estimator')}; load it with "
            "bagbasis.neural.load_network"
        )
    return _made(url, values)


def _made(url: str, values: dict[str, Any]) -> DoubleBasis:
    """Return the estimator with a state that was read."""
    try:
        kind = _ESTIMATORS[values["estimator"]]
        estimator = kind(**params_from_dict(values))
        learns, precision = fit_parameters_of(estimator).learns, estimator.precision
        constraints_of(kind)["precision"].check("precision", precision)
        check_report(values["report"])
        arrays = read_model_arrays(url, RidgeModel.array_names(values, learns))
        estimator.model_ = RidgeModel.from_state(ModelState(values, arrays), learns, precision)
        return estimator
    except Exception as error:  # whatever a damaged file leads to
        refuse_exhaustion(url, error)
        raise unreadable(url, values, error) from newer_error(error, values) or error


def unreadable(url: str, values: Mapping[str, Any], error: Exception) -> ModelError:
    """Return the error for a model that cannot be made from its state: newer, or damaged."""
    newer = newer_error(error, values)
    return ModelError(f"{url}: {newer or f'damaged model ({type(error).__name__}: {error})'}")
