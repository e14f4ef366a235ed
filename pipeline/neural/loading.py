"""`load_network`: read neural estimators from their files."""

from __future__ import annotations

import os

import numpy as np

from ..core.errors import ModelError, StoreError, refuse_exhaustion
from ..core.saved import newer_error
from ..data.storage.files import GROUP_FILE
from ..data.storage.folders import read_one
from ..data.storage.urls import normalize_url
from ..data.storage.zarr_stores import attributes_of
from ..models.loading import PythonFunction, read_network, unreadable
from ..models.saving import MODEL_KEY, read_model_state
from .bag_density import BagDensity
from .bag_networks import LabelledNetwork, NetworkClassifier, NetworkRegressor
from .estimator import NeuralEstimator
from .files import read_network_file
from .sequences import NextPointRegressor, SequenceClassifier, SequenceRegressor
from .set_models import DeepSetsClassifier, DeepSetsRegressor
from .tan import TANDensity

_KINDS: dict[str, type[NeuralEstimator]] = {
    kind.__name__: kind
    for kind in (
        BagDensity,
        DeepSetsClassifier,
        DeepSetsRegressor,
        NextPointRegressor,
        SequenceClassifier,
        SequenceRegressor,
        TANDensity,
    )
}


def load_network(path: str | os.PathLike[str]) -> NeuralEstimator:
    """Load a network that ``save``, `save_model` or ``bags fit`` wrote.

    No code from the file or the folder is run.

    Raises
    ------
    StoreError
        If the file does not exist or is not a saved estimator.
    ModelError
        If the model in the folder is damaged.

    See Also
    --------
    bagbasis.load_model : Load a saved model.
    bagbasis.models.save_model : Save a fitted model.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(0.5, 2.0, 60)
    >>> X = [rng.normal(0, s, (20, 1)) for s in y]
    >>> from bagbasis.neural import DeepSetsRegressor, load_network
    >>> model = DeepSetsRegressor(n_steps=20, validate_every=10).fit(X, y)
    >>> model.save('network.zarr')
    >>> load_network('network.zarr').predict(X[:3]).shape
    (3,)
    """
    url = normalize_url(path)
    if MODEL_KEY in attributes_of(url):
        return read_one(url, lambda: _load_folder(url), last=GROUP_FILE)
    leaves, header = read_network_file(path)
    kind = _KINDS.get(str(header.get("kind")))
    if kind is None:
        raise StoreError(f"{path}: is not a saved network (kind {header.get('kind')!r})")
    return kind.from_header(header, leaves, str(path))


def _load_folder(url: str) -> NeuralEstimator:
    """Return the estimator that `save_model` wrote."""
    values = read_model_state(url)
    kind = _KINDS.get(str(values.get("estimator")))
    if kind is None:
        raise ModelError(f"{url}: is not a network; load it with bagbasis.load_model")
    arrays = read_network(url, values)
    try:
        leaves = [array.astype(np.float32) for array in arrays]
        header = {**values["network"], "report": values["report"], "parameters": values["params"]}
        model = kind.from_header(header, leaves, url)
    except Exception as error:  # whatever a damaged file leads to
        refuse_exhaustion(url, error)
        raise unreadable(url, values, error) from newer_error(error, values) or error
    if isinstance(model, LabelledNetwork):
        model.versions_ = dict(values["versions"])
    return model


def _load_pyfunc(path: str) -> PythonFunction:
    """Load a network that MLflow stored; MLflow calls the function by this name."""
    model = load_network(path)
    if not isinstance(model, (NetworkClassifier, NetworkRegressor)):
        raise ModelError(f"{path}: is not a network of numbers or classes")
    return PythonFunction(model)
