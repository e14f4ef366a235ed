"""`DeepSetsRegressor`, `DeepSetsClassifier`: the learned peer of the Double-Basis estimators."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from ..arrays import Floats, Integers
from ..bags import Bags, as_bags
from ..errors import DataError
from ..execution import Progress
from ..labelled import BagsLike, LabelsLike
from ..parameters import Function, Integer, None_, Table, Text, check_parameters, checked
from ..sklearn_bases import ClassifierMixin, RegressorMixin
from ..store import BagStore
from .deep_sets import DeepSet
from .estimator import TRAINING, NeuralEstimator, read_examples
from .examples import Examples, Standard, padded
from .training import Batch

PREDICTED_AT_ONCE = 256  # bags

SETS: Table = {
    "n_pooled": Integer(1, 100_000),
    "n_hidden": Integer(1, 100_000),
    "max_points": Integer(1, 10**7),
    **TRAINING,
}


class SetEstimator(NeuralEstimator):
    """Base: a net of each point, the mean over the bag, a net of the mean.

    Parameters
    ----------
    n_pooled : int from 1 to 100,000, default 64
        Numbers that are averaged over points.
    n_hidden : int from 1 to 100,000, default 64
        Of both nets' layers.
    max_points : int from 1 to 10,000,000, default 512
        Of a bag in a minibatch: larger ones are thinned by evenly spread points. Predictions use
        all points.
    learning_rate : float in (0, 10], default 0.003
    optimizer : {"adam", "sgd"}, default "adam"
    decay : float in (0, 1], default 0.7
    decay_steps : int from 1 to 1,000,000,000, default 500
    clip : float > 0, default 1.0
    batch_size : int from 1 to 1,000,000, default 32
    n_steps : int from 1 to 1,000,000,000, default 3000
    validation : float in [0, 1), default 0.1
    validate_every : int from 1 to 1,000,000,000, default 100
    patience : int from 1 to 1,000,000,000, default 10
    checkpoint : str, optional
    seed : int from 0 to 2^64 − 1, default 0
    """

    PARAMETERS: ClassVar[Table] = SETS

    def __init__(
        self,
        n_pooled: int = 64,
        n_hidden: int = 64,
        max_points: int = 512,
        learning_rate: float = 0.003,
        optimizer: str = "adam",
        decay: float = 0.7,
        decay_steps: int = 500,
        clip: float = 1.0,
        batch_size: int = 32,
        n_steps: int = 3000,
        validation: float = 0.1,
        validate_every: int = 100,
        patience: int = 10,
        checkpoint: str | None = None,
        seed: int = 0,
    ) -> None:
        self.n_pooled = n_pooled
        self.n_hidden = n_hidden
        self.max_points = max_points
        self.learning_rate = learning_rate
        self.optimizer = optimizer
        self.decay = decay
        self.decay_steps = decay_steps
        self.clip = clip
        self.batch_size = batch_size
        self.n_steps = n_steps
        self.validation = validation
        self.validate_every = validate_every
        self.patience = patience
        self.checkpoint = checkpoint
        self.seed = seed

    def _network(self, key: jax.Array) -> DeepSet:
        d, k = self._decided["n_dims"], self._decided["n_outputs"]
        return DeepSet(d, self.n_pooled, self.n_hidden, k, key)

    def _decide(self, examples: Examples, n_outputs: int, more: dict[str, Any]) -> None:
        self._decided = {"n_dims": examples.bags.n_dims, "n_outputs": n_outputs, **more}
        self._standards = {"points": Standard.of(examples.sample().points.astype(np.float64))}
        self._restore()

    def _outputs(self, X: BagsLike) -> np.ndarray:
        """Return the network's outputs of each bag, of all its points, shape (n_bags, k)."""
        self._check_fitted()
        found = []
        for bags in blocks_of(X, self.n_features_in_):
            points, mask = padded(bags, self._standards["points"], int(bags.sizes.max()))
            found.append(np.asarray(_apply(self.network_, jnp.asarray(points), jnp.asarray(mask))))
        return np.concatenate(found)


class DeepSetsRegressor(RegressorMixin, SetEstimator):
    """Numbers of bags by a network that is learnt, mean pool and all.

    What `DoubleBasisRegressor` fixes in advance (the functions that are averaged) is learnt here,
    by thousands of minibatches in place of one pass. Needs ``pip install 'bagbasis[neural]'``.
    Parameters and attributes are those of `SetEstimator` and `NeuralEstimator`.
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
        """Train on bags with numbers.

        Parameters
        ----------
        X : Bags, list of (n_i, d) arrays, or BagStore
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
        self._train(_squares, SetBatches(self, examples), examples, progress)
        return self

    def predict(self, X: BagsLike) -> Floats:
        """Return numbers of bags, shape (n_bags,) or (n_bags, k).

        Raises
        ------
        DataError
            Not fitted, or bags of another dimension.
        """
        found = self._outputs(X)
        back = self._standards["labels"].back(found)
        return back[:, 0] if self._decided["single"] else back


class DeepSetsClassifier(ClassifierMixin, SetEstimator):
    """Classes of bags by a network that is learnt; see `DeepSetsRegressor`.

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
        y : shape (n_bags,)
            Text or integers, of bags in memory.
        target : str, optional
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
        self._train(_cross_entropy, SetBatches(self, examples), examples, progress)
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
        return np.asarray(jax.nn.softmax(self._outputs(X), axis=1), np.float64)

    def predict(self, X: BagsLike) -> np.ndarray:
        """Return the most probable class of each bag.

        Raises
        ------
        DataError
            Not fitted, or bags of another dimension.
        """
        return self.classes_[self._outputs(X).argmax(axis=1)]


class SetBatches:
    """Padded minibatches of thinned bags with their labels."""

    def __init__(self, model: SetEstimator, examples: Examples) -> None:
        self.examples, self.batch_size = examples, model.batch_size
        self.standards = model._standards  # noqa: SLF001 - its own batches
        self.length = min(examples.longest, model.max_points)

    def batch(self, step: int) -> Batch:
        """See `Batches`."""
        return self._made(self.examples.rows_of(step))

    def validation(self) -> list[Batch]:
        """See `Batches`."""
        rows, size = self.examples.held_out, self.batch_size
        return [self._made(rows[i : i + size]) for i in range(0, len(rows), size)]

    def _made(self, rows: Integers) -> Batch:
        bags, labels = self.examples.take(rows)
        points, mask = padded(thinned(bags, self.length), self.standards["points"], self.length)
        assert labels is not None
        if "labels" in self.standards:
            return points, mask, self.standards["labels"](labels)
        return points, mask, labels[:, 0].astype(np.int32)


def thinned(bags: Bags, most: int) -> Bags:
    """Return bags of at most so many points, evenly spread over those that have more."""
    if int(bags.sizes.max(initial=0)) <= most:
        return bags
    return Bags.from_list([
        bag if len(bag) <= most else bag[np.linspace(0, len(bag) - 1, most).astype(np.int64)]
        for bag in bags
    ])  # fmt: skip


def blocks_of(X: BagsLike, n_dims: int) -> list[Bags]:
    """Return bags in blocks to predict.

    Raises
    ------
    DataError
        Bags of another dimension, or none.
    """
    if isinstance(X, BagStore):
        cuts = range(0, X.n_bags, PREDICTED_AT_ONCE)
        bags = [X.read(a, min(X.n_bags, a + PREDICTED_AT_ONCE)) for a in cuts]
    else:
        whole = as_bags(X)
        cuts = range(0, len(whole), PREDICTED_AT_ONCE)
        bags = [whole[a : a + PREDICTED_AT_ONCE] for a in cuts]
    if not bags:
        raise DataError("no bags")
    if bags[0].n_dims != n_dims:
        raise DataError(f"bags have dimension {bags[0].n_dims}, the model {n_dims}")
    return bags


@eqx.filter_jit
def _apply(network: DeepSet, points: jax.Array, mask: jax.Array) -> jax.Array:
    return jax.vmap(network)(points, mask)


def _squares(network: DeepSet, batch: Batch, key: jax.Array) -> jax.Array:
    return jnp.mean((jax.vmap(network)(batch[0], batch[1]) - batch[2]) ** 2)


def _cross_entropy(network: DeepSet, batch: Batch, key: jax.Array) -> jax.Array:
    found = jax.vmap(network)(batch[0], batch[1])
    return optax.softmax_cross_entropy_with_integer_labels(found, batch[2]).mean()
