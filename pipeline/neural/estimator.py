"""`NeuralEstimator`: the base of all neural estimators: parameters, training, saving."""

from __future__ import annotations

import json
import os
from abc import abstractmethod
from typing import Any, Self

import equinox as eqx
import jax
import numpy as np
from sklearn.utils import Tags

from ..core import check_parameters
from ..core.errors import StoreError
from ..core.moved import today_names
from ..core.saved import newer_error
from ..core.sklearn_bases import BaseEstimator, UnfittedError, of_bags
from ..data.bags.bags import Bags
from ..data.labelled.labelled import LabelledBags
from ..execution.progress import Progress
from .declared import TrainingParameters
from .examples import Examples, Standard
from .files import leaves_of, with_leaves, write_network_file
from .training import Loss, Network, Trained, train


def shape_of(bags: LabelledBags) -> dict[str, Any]:
    """Return the number of coordinates, and their names where they have names, for JSON."""
    names = bags.coordinate_names
    return {"n_dims": bags.n_dims, **({} if names is None else {"coordinates": names})}


class NeuralEstimator(TrainingParameters, BaseEstimator):
    """Base of estimators that are networks trained by minibatches.

    Attributes
    ----------
    loss_ : float
        Smallest mean loss on the held-out bags; with validation=0, on minibatches.
    history_ : list of (step, loss)
        Losses of all evaluations.
    n_steps_ : int
        Number of training steps.
    n_features_in_ : int
        Number of coordinates of a point.
    """

    @abstractmethod
    def _network(self, key: jax.Array) -> Network:
        """Return the network before training, from the parameters and `_shape`."""

    def _shape(self) -> dict[str, Any]:
        """Return the sizes of the data that determine the network, as JSON types."""
        return dict(self._decided)

    _decided: dict[str, Any]
    _standards: dict[str, Standard]

    def _train(
        self,
        loss: Loss,
        batches: Any,
        examples: Examples,
        progress: Progress | None,
        answers: Bags | None = None,
    ) -> Trained:
        """Train the network of `_network`, and set the fitted attributes."""
        parameters = json.dumps(
            {**self.get_params(), "n_steps": 0, "checkpoints": None, "of": type(self).__name__},
            sort_keys=True, default=list,
        )  # fmt: skip
        network = self._network(jax.random.key(self.seed % 2**32))
        is_kept = self.checkpoints is not None
        fingerprint = examples.fingerprint(parameters, answers) if is_kept else ""
        trained = train(network, loss, batches, self, progress, fingerprint)
        self.network_ = trained.network
        self.loss_, self.n_steps_, self.history_ = trained.loss, trained.n_steps, trained.history
        return trained

    @property
    def coordinate_names(self) -> list[str] | None:
        """Names of the coordinates of the fitted bags; None if they had no names."""
        names: list[str] | None = self._decided.get("coordinates")
        return names

    def __sklearn_tags__(self) -> Tags:
        """Tell scikit-learn that X are bags."""
        return of_bags(super().__sklearn_tags__())

    def _check_fitted(self) -> None:
        if not hasattr(self, "network_"):
            raise UnfittedError(f"the {type(self).__name__} is not fitted: call fit first")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted estimator as one file, of arrays and JSON, atomically.

        Parameters
        ----------
        path : str
            Path or URL of the file, usually ending in ``.npz``.

        Raises
        ------
        DataError
            If the estimator is not fitted.
        StoreError
            If the file cannot be written.
        """
        self._check_fitted()
        parameters = json.loads(json.dumps(self.get_params(), default=list))
        header = {"kind": type(self).__name__, "parameters": parameters, **self.header()}
        write_network_file(path, leaves_of(self.arrays()), header)

    def header(self) -> dict[str, Any]:
        """Return the contents of a file besides parameters and arrays, as JSON types."""
        standards = {
            name: [standard.mean.tolist(), standard.scale.tolist()]
            for name, standard in self._standards.items()
        }
        fitted = {"loss": self.loss_, "n_steps": self.n_steps_, "history": self.history_}
        return {"decided": self._decided, "standards": standards, "fitted": fitted}

    def arrays(self) -> Network:
        """Return the network's arrays as a pytree."""
        return eqx.filter(self.network_, eqx.is_inexact_array)

    @classmethod
    def from_header(cls, header: dict[str, Any], leaves: list[np.ndarray], path: str) -> Self:
        """Return the estimator of a header and its arrays, as `load_network` reads them."""
        try:
            model = cls(**today_names(cls.__name__, header["parameters"]))
            check_parameters(model)
            model._decided = dict(header["decided"])
            model._standards = {
                name: Standard(np.array(mean), np.array(scale))
                for name, (mean, scale) in header["standards"].items()
            }
            fitted = header["fitted"]
            model.loss_, model.n_steps_ = fitted["loss"], fitted["n_steps"]
            model.history_ = [(int(a), float(b)) for a, b in fitted["history"]]
            model._read_header(header)
            model._restore()
        except (KeyError, TypeError, ValueError) as error:
            newer = newer_error(error, header)
            reason = newer or f"is no saved {cls.__name__} ({error})"
            raise StoreError(f"{path}: {reason}") from newer or error
        empty = model._network(jax.random.key(0))
        model.network_ = _inference(_with_arrays(empty, leaves, path))
        return model

    def _read_header(self, header: dict[str, Any]) -> None:
        """Set further attributes that this kind of estimator has saved."""

    def _restore(self) -> None:
        """Set the attributes that follow from the saved ones."""
        self.n_features_in_ = int(self._decided["n_dims"])


def _with_arrays(network: Network, leaves: list[np.ndarray], path: str) -> Network:
    arrays, static = eqx.partition(network, eqx.is_inexact_array)
    return eqx.combine(with_leaves(arrays, leaves, path), static)


def _inference(network: Network) -> Network:
    return eqx.nn.inference_mode(network)
