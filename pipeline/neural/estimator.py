"""`NeuralEstimator`: what all estimators of this room share: parameters, training, saving."""

from __future__ import annotations

import json
import os
from abc import abstractmethod
from typing import Any, ClassVar, Self

import equinox as eqx
import jax
import numpy as np

from ..bags import as_bags
from ..errors import DataError, StoreError
from ..execution import Progress
from ..labelled import BagsLike, LabelledBags, LabelsLike, as_targets, with_targets
from ..parameters import (
    Integer,
    None_,
    OneOf,
    Real,
    Seed,
    ShareOrZero,
    Table,
    Text,
    check_parameters,
)
from ..sklearn_bases import BaseEstimator
from ..store import BagStore
from .examples import Examples, Standard
from .files import leaves_of, with_leaves, write_arrays
from .training import Loss, Network, Schedule, Trained, train

TRAINING: Table = {
    "learning_rate": Real(gt=0, le=10),
    "optimizer": OneOf("adam", "sgd"),
    "decay": Real(gt=0, le=1),
    "decay_steps": Integer(1, 10**9),
    "clip": Real(gt=0),
    "batch_size": Integer(1, 10**6),
    "n_steps": Integer(1, 10**9),
    "validation": ShareOrZero,
    "validate_every": Integer(1, 10**9),
    "patience": Integer(1, 10**9),
    "checkpoint": Text | None_,
    "seed": Seed,
}


class NeuralEstimator(BaseEstimator):
    """Base of estimators that are networks trained by minibatches.

    Attributes
    ----------
    loss_ : float
        The least mean loss on the bags held out; of minibatches with validation=0.
    history_ : list of (step, loss)
    n_steps_ : int
    n_features_in_ : int
        Coordinates of a point.
    """

    PARAMETERS: ClassVar[Table] = TRAINING
    learning_rate: float
    optimizer: str
    decay: float
    decay_steps: int
    clip: float
    batch_size: int
    n_steps: int
    validation: float
    validate_every: int
    patience: int
    checkpoint: str | None
    seed: int

    @abstractmethod
    def _network(self, key: jax.Array) -> Network:
        """Return the network before training, from parameters and what `_shape` has."""

    def _shape(self) -> dict[str, Any]:
        """Return what of the data decides the network, for JSON."""
        return dict(self._decided)

    _decided: dict[str, Any]
    _standards: dict[str, Standard]

    def _train(
        self, loss: Loss, batches: Any, examples: Examples, progress: Progress | None
    ) -> Trained:
        """Train the network of `_network`, and keep what it came to."""
        schedule = Schedule(
            self.n_steps, self.learning_rate, self.optimizer, self.decay, self.decay_steps,
            self.clip, self.validate_every, self.patience, self.seed, self.checkpoint,
        )  # fmt: skip
        parameters = json.dumps(
            {**self.get_params(), "n_steps": 0, "checkpoint": None, "of": type(self).__name__},
            sort_keys=True, default=list,
        )  # fmt: skip
        network = self._network(jax.random.key(self.seed % 2**32))
        found = train(network, loss, batches, schedule, progress, examples.fingerprint(parameters))
        self.network_ = found.network
        self.loss_, self.n_steps_, self.history_ = found.loss, found.n_steps, found.history
        return found

    def _check_fitted(self) -> None:
        if not hasattr(self, "network_"):
            raise DataError(f"the {type(self).__name__} is not fitted: call fit first")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted estimator as one file, of arrays and JSON, whole or not at all.

        Parameters
        ----------
        path : str
            Usually ending in ``.npz``.

        Raises
        ------
        DataError
            Not fitted.
        StoreError
            The place cannot be written.
        """
        self._check_fitted()
        standards = {
            name: [one.mean.tolist(), one.scale.tolist()] for name, one in self._standards.items()
        }
        header = {
            "kind": type(self).__name__,
            "parameters": json.loads(json.dumps(self.get_params(), default=list)),
            "decided": self._decided,
            "standards": standards,
            "fitted": {"loss": self.loss_, "n_steps": self.n_steps_, "history": self.history_},
        }
        write_arrays(path, leaves_of(_arrays(self.network_)), header)

    @classmethod
    def from_header(cls, header: dict[str, Any], leaves: list[np.ndarray], path: str) -> Self:
        """Return the estimator of a header and its arrays, as `load_network` reads them."""
        try:
            model = cls(**header["parameters"])
            check_parameters(model)
            model._decided = dict(header["decided"])
            model._standards = {
                name: Standard(np.array(mean), np.array(scale))
                for name, (mean, scale) in header["standards"].items()
            }
            fitted = header["fitted"]
            model.loss_, model.n_steps_ = fitted["loss"], fitted["n_steps"]
            model.history_ = [(int(a), float(b)) for a, b in fitted["history"]]
            model._restore()
        except (KeyError, TypeError, ValueError) as error:
            raise StoreError(f"{path}: is no saved {cls.__name__} ({error})") from error
        empty = model._network(jax.random.key(0))
        model.network_ = _inference(_with_arrays(empty, leaves, path))
        return model

    def _restore(self) -> None:
        """Set attributes that follow from what was decided."""
        self.n_features_in_ = int(self._decided["n_dims"])


def read_examples(
    X: BagsLike,
    y: LabelsLike,
    target: str | None,
    batch_size: int,
    validation: float,
    seed: int,
    *,
    classes: bool = False,
    labelled: bool = True,
) -> tuple[Examples, dict[str, Any]]:
    """Return the examples of bags with their labels, and {"classes": names} or {"single": bool}.

    Raises
    ------
    DataError
        No labels, or none that can be learnt.
    """
    if not labelled:
        data = LabelledBags(X if isinstance(X, BagStore) else as_bags(X))
        index = data.start + np.flatnonzero(data.present())
        return Examples(data, index, None, batch_size, validation, seed), {}
    more: dict[str, Any]
    if classes and y is not None:
        given = as_targets(y)
        if given.ndim != 1:
            raise DataError(f"y has shape {given.shape}; expected one class per bag")
        names, codes = np.unique(given, return_inverse=True)
        bags, _ = with_targets(X, codes.astype(np.float64), target)
        more = {"classes": names.tolist()}
    else:
        bags, single = with_targets(X, y, target)
        more = {"single": single}
    blocks = [(start + rows, labels) for (start, _), rows, labels in bags.label_blocks()]
    places, values = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    known = np.isfinite(values).all(axis=1)
    if not known.any():
        raise DataError("no bag has a label")
    if classes and y is None:
        named = bags.class_names.get(bags.target_names[0])
        codes = values[known]
        more = {"classes": list(named) if named else np.unique(codes).tolist()}
        if not named:
            values[known] = np.searchsorted(np.unique(codes), codes)
    return (
        Examples(bags, places[known], values[known], batch_size, validation, seed),
        more,
    )


def _arrays(network: Network) -> Network:
    return eqx.filter(network, eqx.is_inexact_array)


def _with_arrays(network: Network, leaves: list[np.ndarray], path: str) -> Network:
    arrays, static = eqx.partition(network, eqx.is_inexact_array)
    return eqx.combine(with_leaves(arrays, leaves, path), static)


def _inference(network: Network) -> Network:
    return eqx.nn.inference_mode(network)
