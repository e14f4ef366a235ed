"""Saving and loading fitted estimators as Zarr arrays and JSON attributes, never pickle."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray
from zarr.codecs import Crc32cCodec, ZstdCodec

from ..bags import Box
from ..embeddings import EMBEDDINGS, ProjectionSpec
from ..errors import ModelError, StoreError
from ..random_features import RandomFourierFeatures
from ..storage.files import storage_errors, writing_folder
from ..storage.replacing import attributes_of, check_replaceable
from ..storage.urls import normalize_url
from ..storage.zarr_stores import exists, zarr_store
from .estimators import DoubleBasisClassifier, DoubleBasisRegressor
from .feature_map import FeatureMap
from .triple_basis import TripleBasisRegressor

FORMAT_VERSION = 1
ATTRIBUTE = "bagbasis_model"
RUN = "bagbasis_run"
ESTIMATORS: dict[str, Any] = {
    kind.__name__: kind
    for kind in (DoubleBasisRegressor, DoubleBasisClassifier, TripleBasisRegressor)
}
ARRAYS = ("coef_", "intercept_", "alphas_", "alpha_scores_")
RESPONSE_ARRAYS = ("mean_coefficients_",)
EMBEDDING_PARAMS = ("embedding", "response_embedding")
OWN_KEYS = {  # what only this kind of estimator has
    DoubleBasisRegressor: "single_target",
    DoubleBasisClassifier: "classes",
    TripleBasisRegressor: "response",
}
PACKAGES = ("bagbasis", "numpy", "scipy", "zarr", "numba", "scikit-learn")


def save_model(
    model: Any, url: str | os.PathLike[str], overwrite: bool = False, run: str | None = None
) -> None:
    """Write a fitted estimator; a reader finds the whole model or none.

    Locally the model is written beside the target and renamed; elsewhere its attributes, without
    which nothing loads, are written last.

    Parameters
    ----------
    overwrite : bool
        Replace a saved model that is there; nothing else is ever replaced.
    run : str, optional
        The id of the submitted run that saves it, to be known again by; see `is_of_run`.

    Raises
    ------
    ModelError
        Not fitted, something is stored at the URL, or writing failed.
    """
    state = _state(model)
    url = normalize_url(url)
    check_replaceable(url, overwrite, "a saved model", lambda at: ATTRIBUTE in attributes_of(at))
    with (
        storage_errors(url, "saving failed", "nothing was saved", ModelError),
        writing_folder(url, overwrite=overwrite) as place,
    ):
        _write(model, state, place, run)


def write_model(model: Any, place: str) -> None:
    """Write a fitted estimator to a place where nothing is; `save_model` is for all others.

    Raises
    ------
    ModelError
        Not fitted.
    OSError
        The place can not be written.
    """
    _write(model, _state(model), place, None)


def is_of_run(url: str | os.PathLike[str], run: str | None) -> bool:
    """Whether that submitted run saved what is at the URL, or was killed while it did.

    False for a run of None.
    """
    return run is not None and attributes_of(normalize_url(url)).get(RUN) == run


def load_model(url: str | os.PathLike[str]) -> Any:
    """A fitted `DoubleBasisRegressor`, `DoubleBasisClassifier` or `TripleBasisRegressor`.

    Loading runs no code from the file.

    Raises
    ------
    ModelError
        Nothing there, not a model, or a format this version does not know.
    """
    url = normalize_url(url)
    try:
        there = exists(url)
    except StoreError as error:
        raise ModelError(str(error)) from error
    if not there:
        raise ModelError(f"{url}: no model there")
    state: Any = attributes_of(url).get(ATTRIBUTE)
    if not isinstance(state, dict):
        raise ModelError(f"{url}: not a saved model")
    if not state:
        raise ModelError(f"{url}: a model whose saving was interrupted; save it again")
    if state.get("format_version") != FORMAT_VERSION:
        raise ModelError(
            f"{url}: model of format {state.get('format_version')}; this version reads "
            f"{FORMAT_VERSION}"
        )
    try:
        group = zarr.open_group(zarr_store(url, read_only=True), mode="r", zarr_format=3)
        return _restored(state, group)
    except Exception as error:
        raise ModelError(f"{url}: damaged model ({type(error).__name__}: {error})") from error


def _write(model: Any, state: dict[str, Any], url: str, run: str | None) -> None:
    attributes: dict[str, Any] = {ATTRIBUTE: {}} | ({} if run is None else {RUN: run})
    group = zarr.open_group(zarr_store(url), mode="w", zarr_format=3, attributes=attributes)
    for name in _arrays(type(model)):
        # a chunk that is lost reads as NaN, one that is flipped fails its checksum
        group.create_array(
            name.rstrip("_"),
            data=np.ascontiguousarray(getattr(model, name), dtype=np.float64),
            compressors=[ZstdCodec(), Crc32cCodec()],
            fill_value=float("nan"),
        )
    group.update_attributes({ATTRIBUTE: state})


def _state(model: Any) -> dict[str, Any]:
    if not hasattr(model, "coef_"):
        raise ModelError("the model is not fitted; call fit before save")
    params = model.get_params(deep=False)
    state = {
        "format_version": FORMAT_VERSION,
        "estimator": type(model).__name__,
        "params": {
            name: _plain(value)
            for name, value in params.items()
            if name not in (*EMBEDDING_PARAMS, "random_features")
        },
        **{name: _embedding_params(params[name]) for name in EMBEDDING_PARAMS if name in params},
        "random_features": _plain_params(params["random_features"]),
        "features": model.features_.to_dict(),
        "alpha": model.alpha_,
        "holdout": model.holdout_,
        "target_names": list(model.target_names_),
        "report": model.report_,
        "versions": {"python": platform.python_version(), **{n: version(n) for n in PACKAGES}},
    }
    state[OWN_KEYS[type(model)]] = _own(model)
    return state


def _own(model: Any) -> Any:
    if isinstance(model, TripleBasisRegressor):
        return model.response_spec_.to_dict()
    if isinstance(model, DoubleBasisClassifier):
        return model.classes_.tolist()
    return model.single_target_


def _arrays(kind: type) -> tuple[str, ...]:
    return ARRAYS + (RESPONSE_ARRAYS if kind is TripleBasisRegressor else ())


def _restored(state: dict[str, Any], group: zarr.Group) -> Any:
    if state["estimator"] not in ESTIMATORS:
        raise ValueError(f"unknown estimator {state['estimator']!r}")
    second = state["random_features"]
    model = ESTIMATORS[state["estimator"]](
        random_features=None if second is None else RandomFourierFeatures(**second),
        **{name: _embedding_of(state[name]) for name in EMBEDDING_PARAMS if name in state},
        **state["params"],
    )
    for name in _arrays(type(model)):
        setattr(model, name, _array(group, name.rstrip("_")))
    model.features_ = FeatureMap.from_dict(state["features"])
    model.alpha_ = state["alpha"]
    model.holdout_ = state["holdout"]
    model.target_names_ = tuple(state["target_names"])
    model.report_ = state["report"]
    model.versions_ = state["versions"]
    foreign = [key for kind, key in OWN_KEYS.items() if key in state and kind is not type(model)]
    if foreign:
        raise ValueError(f"a {type(model).__name__} has no {foreign[0]!r}")
    own = state[OWN_KEYS[type(model)]]
    if isinstance(model, TripleBasisRegressor):
        model.response_spec_ = ProjectionSpec.from_dict(own)
    elif isinstance(model, DoubleBasisClassifier):
        model.classes_ = np.array(own)
    else:
        model.single_target_ = own
    _check_shapes(model)
    return model


def _check_shapes(model: Any) -> None:
    features, k = model.features_, len(model.intercept_)
    if features.fourier is not None and features.fourier.n_inputs != features.embedding.n_features:
        raise ValueError("the random features do not fit the embedding")
    if model.coef_.shape != (k, features.n_features) or model.intercept_.shape != (k,):
        raise ValueError(
            f"coefficients have shape {model.coef_.shape}; expected ({k}, {features.n_features})"
        )
    if hasattr(model, "classes_") and model.classes_.shape != (k,):
        raise ValueError(f"{k} rows of coefficients, but classes {model.classes_.tolist()}")
    if hasattr(model, "response_spec_") and not (
        k == model.response_spec_.n_features == len(model.mean_coefficients_)
    ):
        raise ValueError(f"{k} rows of coefficients do not fit the response basis")
    if not (np.isfinite(model.coef_).all() and np.isfinite(model.intercept_).all()):
        raise ValueError("a chunk of the coefficients is missing")


def _array(group: zarr.Group, name: str) -> NDArray[Any]:
    array = group[name]
    if not isinstance(array, zarr.Array):
        raise ValueError(f"{name!r} is not an array")
    return np.asarray(array[:])


def _embedding_params(embedding: Any) -> dict[str, Any] | None:
    if embedding is None:
        return None
    for name, (kind, _) in EMBEDDINGS.items():
        if type(embedding) is kind:
            return {"name": name, "params": _plain_params(embedding)}
    raise ModelError(
        f"an embedding of type {type(embedding).__name__} can not be saved; there are "
        f"{sorted(EMBEDDINGS)}"
    )


def _embedding_of(values: dict[str, Any] | None) -> Any:
    return None if values is None else EMBEDDINGS[values["name"]][0](**values["params"])


def _plain_params(estimator: Any) -> dict[str, Any] | None:
    if estimator is None:
        return None
    return {name: _plain(value) for name, value in estimator.get_params(deep=False).items()}


def _plain(value: Any) -> Any:
    """A parameter as JSON holds it."""
    if isinstance(value, Box):
        return value.bounds
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value
