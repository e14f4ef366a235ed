"""Base classes of networks for sets and sequences: regression and classification."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from functools import partial
from time import perf_counter
from typing import Annotated, Any, ClassVar, Self, overload

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from numpy.typing import NDArray
from typing_extensions import override

from ..core import ListOf, None_, Text, check_parameters, checked
from ..core.arrays import Floats, Integers
from ..core.sklearn_bases import ClassifierMixin, RegressorMixin
from ..data.bags.bags import Bags, BagsInMemory, as_bags, concatenate
from ..data.bags.box import Box, range_of
from ..data.labelled.holdout import HoldoutLike
from ..data.labelled.inputs import BagsLike, LabelsLike
from ..data.store.store import BagStore
from ..embeddings.size import SizeSpec
from ..execution.lazy_dask import LazyArray
from ..execution.progress import Progress
from ..models.fitted_model import PredictionArray
from ..models.outcomes.base import Outcome
from ..models.outcomes.classes import Classes
from ..models.outcomes.reals import Reals
from ..models.predictions.features import lazy_predictions
from ..models.predictions.outside import tell_outside, warning_of_outside
from .estimator import NeuralEstimator, shape_of
from .examples import Examples, Minibatches, Standard, blocks_of, check_points, labelled_examples
from .network_model import NetworkModel
from .training import Loss, Network, Trained, TrainingBatch


@eqx.filter_jit
def _apply(network: Network, points: jax.Array, mask: jax.Array) -> jax.Array:
    outputs: jax.Array = jax.vmap(network)(points, mask)
    return outputs


def outputs_in_training(network: Network, batch: TrainingBatch, key: jax.Array) -> jax.Array:
    """Return the outputs of each bag of a minibatch, each bag with its own key."""
    keys = jax.random.split(key, len(batch[0]))
    outputs: jax.Array = jax.vmap(network)(batch[0], batch[1], keys)
    return outputs


def _squares(network: Network, batch: TrainingBatch, key: jax.Array) -> jax.Array:
    return jnp.mean((outputs_in_training(network, batch, key) - batch[2]) ** 2)


def _cross_entropy(network: Network, batch: TrainingBatch, key: jax.Array) -> jax.Array:
    scores = outputs_in_training(network, batch, key)
    loss: jax.Array = optax.softmax_cross_entropy_with_integer_labels(scores, batch[2]).mean()
    return loss


_TARGET = Text | ListOf(Text, 1) | None_


class BagNetworkEstimator(NeuralEstimator):
    """Base of networks that are called with a bag's points, a mask of them and a key."""

    @abstractmethod
    def _padded(self, bags: Bags) -> tuple[np.ndarray, np.ndarray]:
        """Return points and mask of bags to predict."""

    @abstractmethod
    def _padded_to_train(self, bags: Bags, examples: Examples) -> tuple[np.ndarray, np.ndarray]:
        """Return points and mask of bags of a minibatch, of one length in all of them."""

    @property
    @abstractmethod
    def numbers_per_point(self) -> int:
        """Number of values in memory per point while a bag is predicted."""

    def _sizes(self, examples: Examples) -> dict[str, Any]:
        """Return further sizes of the bags that are needed to load the network."""
        return {}

    def _decide(self, examples: Examples, n_outputs: int, more: dict[str, Any]) -> None:
        sizes = self._sizes(examples)
        shape = {**shape_of(examples.bags), "n_outputs": n_outputs}
        points = examples.sample().points.astype(np.float64)
        box = {"box": Box.around(*range_of(points)).bounds}
        self._decided = {**shape, **box, **sizes, **more}
        self._standards = {"points": Standard.of(points)}
        self._restore()

    def _learn(self, loss: Loss, examples: Examples, progress: Progress | None) -> Trained:
        make = partial(self._batch, examples)
        return self._train(loss, Minibatches(examples, self.batch_size, make), examples, progress)

    def _batch(self, examples: Examples, rows: Integers) -> TrainingBatch:
        bags, labels = examples.take(rows)
        padded = self._padded_to_train(bags, examples)
        if labels is None:
            return padded
        if "labels" in self._standards:
            return *padded, self._standards["labels"](labels)
        return *padded, labels.argmax(axis=1).astype(np.int32)

    def _outputs(self, X: BagsLike) -> Iterator[tuple[Bags, np.ndarray]]:
        """Yield bags and the network's outputs of each."""
        self._check_fitted()
        for bags in blocks_of(X, self.n_features_in_, self.coordinate_names):
            points, mask = map(jnp.asarray, self._padded(bags))
            yield bags, np.asarray(_apply(self.network_, points, mask))

    def _joined_outputs(self, X: BagsLike) -> np.ndarray:
        """Return the network's outputs of all bags, shape (n_bags, k).

        A `BagbasisWarning` names bags in memory with many points outside the training points' box.
        """
        if isinstance(X, BagStore):
            return np.concatenate([outputs for _, outputs in self._outputs(X)])
        bags = as_bags(X)
        blocks = list(self._outputs(bags))
        box = self._decided.get("box")  # earlier versions have none
        if box is not None and bags.n_points:
            spec = SizeSpec(out_of_box="clip", box=Box.of(box, None))
            counts = np.concatenate([spec.count_outside(block) for block, _ in blocks])
            with warning_of_outside(bags):
                tell_outside(counts, concatenate([block for block, _ in blocks]), {}, spec)
        return np.concatenate([outputs for _, outputs in blocks])


class LabelledNetwork(BagNetworkEstimator):
    """Base of networks that are trained on bags with labels.

    Attributes
    ----------
    model_ : NetworkModel
        Fitted model for evaluation and for predictions of stores.
    outcome_ : Outcome
        Encoding of the labels.
    holdout_ : float or dict
        Specification of the bags that were left out of the fit.
    report_ : dict
        Report of the fit: numbers of bags, points and steps, the loss, and the running time.
    target_names_ : tuple of str
        Names of the targets in the fitted store.
    versions_ : dict
        Versions of the packages with which a loaded network was saved.
    """

    holdout_: float | dict[str, Any]
    report_: dict[str, Any]
    versions_: dict[str, str]
    _learns: ClassVar[type[Outcome]]

    @property
    def longest(self) -> int:
        """Number of points of the longest training bag, or `max_length`."""
        return int(self._decided.get("length", 1))

    @property
    def outcome_(self) -> Outcome:
        """Encoding of the labels."""
        decided = {"single_target": self._decided.get("single"), **self._decided}
        names = tuple(self._decided.get("names", ()))
        return self._learns.from_dict(decided, names, self._decided["n_outputs"])

    @property
    def model_(self) -> NetworkModel:
        """The fitted model; for scikit-learn, an estimator without it is not fitted."""
        if not hasattr(self, "network_"):
            raise AttributeError("model_")
        return NetworkModel(self, self.outcome_, self.holdout_, self.report_)

    @property
    def target_names_(self) -> tuple[str, ...]:
        """Names of the targets; empty for labels without names."""
        return self.outcome_.names

    @abstractmethod
    def decision_rows(self, X: BagsLike) -> Floats:
        """Return the rows that the outcome reads, shape (n_bags, k)."""

    @override
    def header(self) -> dict[str, Any]:
        return {**super().header(), "holdout": self.holdout_, "report": self.report_}

    def _read_header(self, header: dict[str, Any]) -> None:
        self.holdout_ = header.get("holdout", 0.0)
        self.report_ = dict(header.get("report", {}))

    def _fit(
        self,
        X: BagsLike,
        y: LabelsLike,
        target: str | list[str] | None,
        holdout: HoldoutLike,
        progress: Progress | None,
    ) -> Self:
        begun = perf_counter()
        check_parameters(self)
        options = (self.batch_size, self.validation, self.seed)
        prepared, outcome = labelled_examples(self._learns, X, y, target, holdout, *options)
        labels = prepared.examples.labels
        assert labels is not None
        more = {"names": list(outcome.names), **outcome.to_dict()}
        self._decide(prepared.examples, outcome.n_targets, more)
        self._standardise_labels(labels[prepared.examples.training])
        n_resumed = self._learn(self._loss(), prepared.examples, progress).n_steps_resumed
        trained = {"n_steps": self.n_steps_, "n_steps_resumed": n_resumed, "loss": self.loss_}
        self.holdout_ = prepared.holdout
        self.report_ = {**prepared.report, **trained, "seconds": {"fit": perf_counter() - begun}}
        return self

    @abstractmethod
    def _loss(self) -> Loss:
        """Return the loss of a minibatch."""

    def _standardise_labels(self, labels: np.ndarray) -> None:
        """Keep what labels are divided by in training; classes are not."""

    def _lazily(
        self, of_bags: Callable[[Bags], NDArray[Any]], array: str, store: BagStore
    ) -> LazyArray:
        """Return an array of the outcome for a store; bags removed from it have missing rows."""
        self._check_fitted()
        check_points(store, self.n_features_in_, self.coordinate_names)
        column = self.outcome_.layout(array, store)
        cost = self.model_.prediction_cost
        return lazy_predictions(of_bags, cost, store, column.tail, column.dtype)


class NetworkRegressor(RegressorMixin, LabelledNetwork):
    """Base of networks whose outputs are numbers."""

    _learns: ClassVar[type[Outcome]] = Reals

    @checked
    def fit(
        self,
        X: BagsLike,
        y: LabelsLike = None,
        *,
        target: Annotated[str | list[str] | None, _TARGET] = None,
        holdout: HoldoutLike = 0.0,
        progress: Progress | None = None,
    ) -> Self:
        """Train on bags with numbers.

        Parameters
        ----------
        X : Bags, list of (n_i, d) arrays, or BagStore
            Bags. A store with up to 1 GiB of points is read into memory; from a larger store,
            minibatches are read when they are needed.
        y : shape (n_bags,) or (n_bags, k)
            Labels of bags in memory.
        target : str or list of str, optional
            Name or names of the targets, for a store with several targets.
        holdout : float in [0, 1) or mapping, default 0.0
            Bags that are left out of the fit, for evaluation; see `DoubleBasisRegressor.fit`. With
            groups, the validation bags are whole groups, too.
        progress : callable (steps done, steps in all), optional
            Function that is called with the progress of training.

        Raises
        ------
        DataError
            If there are no labels, or the loss is not finite.
        """
        return self._fit(X, y, target, holdout, progress)

    @overload
    def predict(self, X: BagStore) -> LazyArray: ...
    @overload
    def predict(self, X: BagsInMemory) -> Floats: ...
    def predict(self, X: BagsLike) -> PredictionArray:
        """Return the predicted numbers of bags, shape (n_bags,) or (n_bags, k); lazy for a store.

        Raises
        ------
        DataError
            If the estimator is not fitted, or the bags have another dimension.
        """
        if isinstance(X, BagStore):
            return self._lazily(self.predict, "predictions", X)
        rows = self.decision_rows(X)
        return self.outcome_.predict(rows).values

    @override
    def decision_rows(self, X: BagsLike) -> Floats:
        outputs = self._joined_outputs(X)
        return self._standards["labels"].back(outputs)

    def _loss(self) -> Loss:
        return _squares

    def _standardise_labels(self, labels: np.ndarray) -> None:
        self._standards["labels"] = Standard.of(labels)


class NetworkClassifier(ClassifierMixin, LabelledNetwork):
    """Base of networks whose outputs are classes.

    Attributes
    ----------
    classes_ : array, shape (n_classes,)
        Labels of the classes, in the order of the columns of `predict_proba`.
    """

    _learns: ClassVar[type[Outcome]] = Classes

    @checked
    def fit(
        self,
        X: BagsLike,
        y: LabelsLike = None,
        *,
        target: str | None = None,
        holdout: HoldoutLike = 0.0,
        progress: Progress | None = None,
    ) -> Self:
        """Train on bags with classes.

        Parameters
        ----------
        X : Bags, list of (n_i, d) arrays, or BagStore
            Bags. A store with up to 1 GiB of points is read into memory; from a larger store,
            minibatches are read when they are needed.
        y : shape (n_bags,)
            Classes of bags in memory: strings or integers.
        target : str, optional
            Name of the target, for a store with several targets.
        holdout : float in [0, 1) or mapping, default 0.0
            Bags that are left out of the fit, for evaluation; see `NetworkRegressor.fit`.
        progress : callable (steps done, steps in all), optional
            Function that is called with the progress of training.

        Raises
        ------
        DataError
            If there are no labels, there is only one class, or the loss is not finite.
        """
        return self._fit(X, y, target, holdout, progress)

    def _loss(self) -> Loss:
        return _cross_entropy

    def _restore(self) -> None:
        super()._restore()
        outcome = self.outcome_
        assert isinstance(outcome, Classes)
        self.classes_ = outcome.values

    @override
    def decision_rows(self, X: BagsLike) -> Floats:
        # the probability of each class
        return np.asarray(jax.nn.softmax(self._joined_outputs(X), axis=1), np.float64)

    @overload
    def predict_proba(self, X: BagStore) -> LazyArray: ...
    @overload
    def predict_proba(self, X: BagsInMemory) -> Floats: ...
    def predict_proba(self, X: BagsLike) -> PredictionArray:
        """Return the probability of each class, shape (n_bags, n_classes); lazy for a store.

        Raises
        ------
        DataError
            If the estimator is not fitted, or the bags have another dimension.
        """
        if isinstance(X, BagStore):
            return self._lazily(self.predict_proba, "probabilities", X)
        return self.decision_rows(X)

    @overload
    def predict(self, X: BagStore) -> LazyArray: ...
    @overload
    def predict(self, X: BagsInMemory) -> np.ndarray: ...
    def predict(self, X: BagsLike) -> PredictionArray:
        """Return the most probable class of each bag; lazy for a store.

        Raises
        ------
        DataError
            If the estimator is not fitted, or the bags have another dimension.
        """
        if isinstance(X, BagStore):
            return self._lazily(self.predict, "predictions", X)
        labels: np.ndarray = self.classes_[self._joined_outputs(X).argmax(axis=1)]
        return labels
