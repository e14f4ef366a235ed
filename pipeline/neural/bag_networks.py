"""Networks that read a bag's points: what sets and sequences share, and their two heads."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from functools import partial
from typing import Any, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from ..arrays import Floats, Integers
from ..bags import Bags
from ..errors import DataError
from ..execution import Progress
from ..labelled import BagsLike, LabelsLike
from ..parameters import Function, None_, Text, check_parameters, checked
from ..sklearn_bases import ClassifierMixin, RegressorMixin
from .estimator import NeuralEstimator, read_examples
from .examples import Examples, Minibatches, Standard, blocks_of
from .training import Batch, Loss, Network


class BagNetworkEstimator(NeuralEstimator):
    """Base of networks that are called with a bag's points, a mask of them and a key."""

    @abstractmethod
    def _padded(self, bags: Bags) -> tuple[np.ndarray, np.ndarray]:
        """Return points and mask of bags to predict."""

    @abstractmethod
    def _padded_to_train(self, bags: Bags, examples: Examples) -> tuple[np.ndarray, np.ndarray]:
        """Return points and mask of bags of a minibatch, of one length in all of them."""

    def _sizes(self, examples: Examples) -> dict[str, Any]:
        """Return what else of the bags the network is to know when it is loaded."""
        return {}

    def _decide(self, examples: Examples, n_outputs: int, more: dict[str, Any]) -> None:
        sizes = self._sizes(examples)
        shape = {"n_dims": examples.bags.n_dims, "n_outputs": n_outputs}
        self._decided = {**shape, **sizes, **more}
        self._standards = {"points": Standard.of(examples.sample().points.astype(np.float64))}
        self._restore()

    def _learn(self, loss: Loss, examples: Examples, progress: Progress | None) -> None:
        make = partial(self._batch, examples)
        self._train(loss, Minibatches(examples, self.batch_size, make), examples, progress)

    def _batch(self, examples: Examples, rows: Integers) -> Batch:
        bags, labels = examples.take(rows)
        padded = self._padded_to_train(bags, examples)
        if labels is None:
            return padded
        if "labels" in self._standards:
            return *padded, self._standards["labels"](labels)
        return *padded, labels[:, 0].astype(np.int32)

    def _outputs(self, X: BagsLike) -> Iterator[tuple[Bags, np.ndarray]]:
        """Yield bags and the network's outputs of each."""
        self._check_fitted()
        for bags in blocks_of(X, self.n_features_in_):
            points, mask = map(jnp.asarray, self._padded(bags))
            yield bags, np.asarray(_apply(self.network_, points, mask))

    def _joined_outputs(self, X: BagsLike) -> np.ndarray:
        """Return the network's outputs of all bags, shape (n_bags, k)."""
        return np.concatenate([outputs for _, outputs in self._outputs(X)])


class NetworkRegressor(RegressorMixin, BagNetworkEstimator):
    """Base of networks whose outputs are numbers."""

    @checked(target=Text | None_, progress=Function | None_)
    def fit(
        self,
        X: BagsLike,
        y: LabelsLike = None,
        *,
        target: str | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Train on bags with numbers.

        Parameters
        ----------
        X : Bags, list of (n_i, d) arrays, or BagStore
            Of a store minibatches are read as they are needed, unless it fits in a GiB.
        y : shape (n_bags,) or (n_bags, k)
            Of bags in memory.
        target : str, optional
            Of a store with several.
        progress : callable (steps done, steps in all), optional

        Raises
        ------
        DataError
            No labels, or a loss that is not finite.
        """
        check_parameters(self)
        examples, more = read_examples(X, y, target, self.batch_size, self.validation, self.seed)
        assert examples.labels is not None
        self._decide(examples, examples.labels.shape[1], more)
        self._standards["labels"] = Standard.of(examples.labels[examples.training])
        self._learn(_squares, examples, progress)
        return self

    def predict(self, X: BagsLike) -> Floats:
        """Return numbers of bags, shape (n_bags,) or (n_bags, k).

        Raises
        ------
        DataError
            Not fitted, or bags of another dimension.
        """
        outputs = self._joined_outputs(X)
        found = self._standards["labels"].back(outputs)
        return found[:, 0] if self._decided["single"] else found


class NetworkClassifier(ClassifierMixin, BagNetworkEstimator):
    """Base of networks whose outputs are classes.

    Attributes
    ----------
    classes_ : array, shape (n_classes,)
    """

    @checked(target=Text | None_, progress=Function | None_)
    def fit(
        self,
        X: BagsLike,
        y: LabelsLike = None,
        *,
        target: str | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Train on bags with classes.

        Parameters
        ----------
        X : Bags, list of (n_i, d) arrays, or BagStore
            Of a store minibatches are read as they are needed, unless it fits in a GiB.
        y : shape (n_bags,)
            Text or integers, of bags in memory.
        target : str, optional
            Of a store with several.
        progress : callable (steps done, steps in all), optional

        Raises
        ------
        DataError
            No labels, one class alone, or a loss that is not finite.
        """
        check_parameters(self)
        examples, more = read_examples(
            X, y, target, self.batch_size, self.validation, self.seed, classes=True
        )
        if len(more["classes"]) < 2:
            raise DataError(f"all bags are of the class {more['classes'][0]!r}")
        self._decide(examples, len(more["classes"]), more)
        self._learn(_cross_entropy, examples, progress)
        return self

    def _restore(self) -> None:
        super()._restore()
        self.classes_ = np.array(self._decided["classes"])

    def predict_proba(self, X: BagsLike) -> Floats:
        """Return the probability of each class, shape (n_bags, n_classes).

        Raises
        ------
        DataError
            Not fitted, or bags of another dimension.
        """
        return np.asarray(jax.nn.softmax(self._joined_outputs(X), axis=1), np.float64)

    def predict(self, X: BagsLike) -> np.ndarray:
        """Return the most probable class of each bag.

        Raises
        ------
        DataError
            Not fitted, or bags of another dimension.
        """
        return self.classes_[self._joined_outputs(X).argmax(axis=1)]


@eqx.filter_jit
def _apply(network: Network, points: jax.Array, mask: jax.Array) -> jax.Array:
    return jax.vmap(network)(points, mask)


def outputs_in_training(network: Network, batch: Batch, key: jax.Array) -> jax.Array:
    """Return the outputs of each bag of a minibatch, each with a key of its own."""
    keys = jax.random.split(key, len(batch[0]))
    found: jax.Array = jax.vmap(network)(batch[0], batch[1], keys)
    return found


def _squares(network: Network, batch: Batch, key: jax.Array) -> jax.Array:
    return jnp.mean((outputs_in_training(network, batch, key) - batch[2]) ** 2)


def _cross_entropy(network: Network, batch: Batch, key: jax.Array) -> jax.Array:
    found = outputs_in_training(network, batch, key)
    return optax.softmax_cross_entropy_with_integer_labels(found, batch[2]).mean()
