"""Models on disk: Zarr arrays and JSON attributes, never pickle.

A `RidgeModel` is converted to a `ModelState` and back; its estimator adds a name and parameters.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, cast, runtime_checkable

import numpy as np
import sklearn.base
from numpy.typing import NDArray

from ..core import UrlOrPath, checked
from ..core.errors import ModelError, shown
from ..core.saved import Format
from ..core.versions import RECORDED_PACKAGES, versions_of
from ..data.bags.box import Box
from ..data.storage.files import storage_errors
from ..data.storage.folders import writing_folder
from ..data.storage.lazy_zarr import zarr, zarr_reading
from ..data.storage.urls import normalize_url
from ..data.storage.zarr_stores import (
    attributes_of,
    check_replaceable,
    exists,
    is_taken,
    read_group,
    zarr_store,
)
from ..data.store.checksums import checksum_of_values
from ..embeddings.base import Embedding
from ..embeddings.composed.point_maps import transformer_to_list
from ..embeddings.kinds import EMBEDDINGS, from_params
from ..embeddings.random_features.base import RandomFeatures
from ..embeddings.random_features.registered import DEFAULT_FEATURES, RANDOM_FEATURES
from .fitting.feature_map import SECOND_BASIS
from .model_state import ModelState

MODEL_FORMAT = Format("model")
VERSIONS = "versions"  # of the packages that saved the model
MODEL_KEY = "bagbasis_model"  # attribute of the Zarr group; empty until everything else is written
MODEL_CHECKSUM = (
    "bagbasis_model_checksum"  # of that attribute; models of earlier versions have none
)
RUN_KEY = "bagbasis_run"  # the name of the run or job that saved the model
EMBEDDING_PARAMS = ("embedding", "response_embedding")  # saved with their registered names


class HasParams(Protocol):
    """A scikit-learn estimator."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the constructor's parameters by name."""
        ...


@runtime_checkable
class HasState(Protocol):
    """A fitted model of any kind."""

    def state(self) -> ModelState:
        """Return the state of the model, which is saved."""
        ...


class Saveable(HasParams, Protocol):
    """A fitted estimator that can be saved."""

    @property
    def model_(self) -> HasState:
        """The fitted model."""
        ...


@checked
def save_model(
    model: Saveable, url: UrlOrPath, *, overwrite: bool = False, run: str | None = None
) -> None:
    """Save a fitted estimator atomically: a reader finds the complete model or none.

    On local disks, the model is written to a temporary folder and renamed. On object stores, the
    arrays are written to a new folder, and a single PUT of the attributes makes them visible.

    Parameters
    ----------
    overwrite : bool
        Whether to replace a saved model; nothing else is ever replaced.
    run : str, optional
        Name of the run or job that saves the model, which `is_of_run` recognises.

    Raises
    ------
    ModelError
        If the estimator is not fitted, something else is stored at the URL, such as a symbolic
        link or a folder with other files, or writing failed.

    See Also
    --------
    bagbasis.load_model : Load a saved model.
    bagbasis.operations.Registry : Versioned models under one URL.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(0.5, 2.0, 80)
    >>> X = [rng.normal(0, s, (30, 2)) for s in y]
    >>> from bagbasis import DoubleBasisRegressor, load_model
    >>> from bagbasis.models import save_model
    >>> save_model(DoubleBasisRegressor('moments').fit(X, y), 'model.zarr')
    >>> load_model('model.zarr').predict(X[:2]).shape
    (2,)
    """
    state = state_of(model)
    url = normalize_url(url)
    check_model_place(url, overwrite)
    with (
        storage_errors(url, "saving failed", "nothing was saved", ModelError),
        writing_folder(url, overwrite=overwrite) as place,
    ):
        write_state(state, place, run)


def check_model_place(url: str, overwrite: bool) -> None:
    """Raise ModelError if `save_model` must not write to the normalized URL.

    Long jobs call this function before they compute.
    """
    check_replaceable(url, overwrite, "a saved model", lambda at: MODEL_KEY in attributes_of(at))


def write_state(state: ModelState, place: str, run: str | None = None) -> None:
    """Write a model to an empty place; `save_model` can also replace a model.

    Raises
    ------
    OSError
        If the place cannot be written.
    """
    begun: dict[str, Any] = {MODEL_KEY: {}} | ({} if run is None else {RUN_KEY: run})
    group = zarr.open_group(zarr_store(place), mode="w", zarr_format=3, attributes=begun)
    for name, array in state.arrays.items():
        # a lost chunk reads as NaN, a flipped one fails its checksum
        group.create_array(
            name,
            data=np.ascontiguousarray(array, dtype=np.float64),
            compressors=zarr_reading.CHECKED_ZSTD,
            fill_value=float("nan"),
        )
    versions = {"python": platform.python_version(), **versions_of(RECORDED_PACKAGES)}
    values = MODEL_FORMAT.stamp({**state.attributes, VERSIONS: versions})
    group.update_attributes(attributes_with(values))


def state_of(model: Saveable) -> ModelState:
    """Return the complete state of a model, as it is saved.

    Raises
    ------
    ModelError
        If the model is not fitted, not one of bagbasis, or its embedding is not registered.
    """
    made = getattr(model, "model_", None)
    if made is None and hasattr(model, "fit"):
        raise ModelError("the model is not fitted; call fit before save")
    if not isinstance(made, HasState):
        raise ModelError(f"{shown(model)} is not a model that can be saved")
    state = made.state()
    params = params_to_dict(model.get_params(deep=False))
    attributes = {"estimator": type(model).__name__, **params, **state.attributes}
    return ModelState(attributes, state.arrays)


def is_of_run(url: str | os.PathLike[str], run: str | None) -> bool:
    """Return whether a run or job of this name saved the model at the URL.

    For the name None, the result is False.
    """
    return run is not None and attributes_of(normalize_url(url)).get(RUN_KEY) == run


def read_model_state(url: str) -> dict[str, Any]:
    """Return the state of a saved model from its attributes.

    Raises
    ------
    ModelError
        If no model exists at ``url``, or its attributes are damaged or of an unsupported format
        version.
    """
    with storage_errors(url, "cannot be read", kind=ModelError):
        if not exists(url):
            raise ModelError(f"{url}: no model there")
        attributes = attributes_of(url)
    state: Any = attributes.get(MODEL_KEY)
    if not isinstance(state, dict):
        raise ModelError(f"{url}: {'not a saved model' if is_taken(url) else 'no model there'}")
    if not state:
        raise ModelError(f"{url}: a model whose saving was interrupted; save it again")
    try:
        check_state(attributes)
    except ValueError as error:
        raise ModelError(f"{url}: damaged model ({error}); restore it, or save it again") from error
    return MODEL_FORMAT.strip(state, url, ModelError)


def read_model_arrays(url: str, names: Sequence[str]) -> dict[str, NDArray[Any]]:
    """Return the arrays of a saved model; checksums of all chunks are verified.

    Raises
    ------
    Exception
        If files are damaged; the type is that of Zarr and its codecs.
    """
    group = read_group(url)
    return {name: np.asarray(zarr_reading.array_of(group, name)[:]) for name in names}


def params_to_dict(params: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of an estimator and of its two bases, in types that JSON knows."""
    nested = {name: _embedding_to_dict(params[name]) for name in EMBEDDING_PARAMS if name in params}
    plain = {n: _plain(v) for n, v in params.items() if n not in (*EMBEDDING_PARAMS, SECOND_BASIS)}
    if SECOND_BASIS not in params:  # of a network
        return {"params": plain}
    second = params[SECOND_BASIS]
    return {"params": plain, **nested, SECOND_BASIS: second and _second_to_dict(second)}


def params_from_dict(values: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters that `params_to_dict` saved; other items are ignored."""
    second = values[SECOND_BASIS]
    nested = {
        name: _embedding_from_dict(values[name]) for name in EMBEDDING_PARAMS if name in values
    }
    if second is not None and second is not False and not isinstance(second, str):
        second = dict(second)
        second = RANDOM_FEATURES.saved(second.pop("name", DEFAULT_FEATURES))(**second)
    return {**values["params"], **nested, SECOND_BASIS: second}


def attributes_with(state: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes of a saved model: its state and the checksum of the state."""
    return {MODEL_KEY: state, MODEL_CHECKSUM: checksum_of_values(state)}


def check_state(attributes: Mapping[str, Any]) -> None:
    """Raise ValueError if the state of a saved model does not match its checksum."""
    expected = attributes.get(MODEL_CHECKSUM)
    if expected is not None and checksum_of_values(attributes[MODEL_KEY]) != expected:
        raise ValueError(f"its attributes do not match their checksum, {expected}")


def _embedding_to_dict(embedding: Embedding | str | None) -> dict[str, Any] | str | None:
    if embedding is None or isinstance(embedding, str):  # "auto", or a name
        return embedding
    if "kind_name" in vars(type(embedding)):
        return {"name": embedding.kind_name, "params": _plain_params(cast(HasParams, embedding))}
    raise ModelError(
        f"an embedding of type {type(embedding).__name__} cannot be saved; there are "
        f"{sorted(EMBEDDINGS)}"
    )


def _second_to_dict(second: RandomFeatures | str) -> dict[str, Any] | str:
    """Return parameters with the registered name; the default has no name."""
    if isinstance(second, str):
        return second
    named = {} if second.kind_name == DEFAULT_FEATURES else {"name": second.kind_name}
    return {**named, **_plain_params(second)}


def _embedding_from_dict(values: dict[str, Any] | str | None) -> Embedding | str | None:
    if isinstance(values, str) and values != "auto":
        EMBEDDINGS.saved(values)
    return values if isinstance(values, str) else from_params(values)


def _plain_params(estimator: HasParams) -> dict[str, Any]:
    return {name: _plain(value) for name, value in estimator.get_params(deep=False).items()}


def _plain(value: object) -> object:
    """Return a parameter in types that JSON knows."""
    if isinstance(value, Box):
        return value.bounds
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, Embedding):  # a part of a union
        return _embedding_to_dict(value)
    if isinstance(value, sklearn.base.BaseEstimator):
        return transformer_to_list(value)
    return value
