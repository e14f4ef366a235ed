"""Estimators for sequences: regression, classification, and prediction of the next point."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from typing_extensions import override

from ..core import check_parameters, checked, component, documented
from ..core.errors import DataError
from ..data.bags.bags import Bags
from ..data.labelled.inputs import BagsLike
from ..execution.progress import Progress
from .bag_networks import (
    BagNetworkEstimator,
    NetworkClassifier,
    NetworkRegressor,
    outputs_in_training,
)
from .declared import SequenceParameters
from .examples import Examples, Standard, blocks_of, padded, unlabelled_examples
from .training import Network, TrainingBatch
from .units import GRU, LSTM, SRU, SequenceNetwork, Unit


@component
class SequenceEstimator(SequenceParameters, BagNetworkEstimator):
    """Base: a recurrent unit over the points of each bag."""

    _per_point: ClassVar[bool] = False

    def _network(self, key: jax.Array) -> SequenceNetwork:
        d, k = self._decided["n_dims"], self._decided["n_outputs"]
        first, second = jax.random.split(key)
        unit: Unit
        if self.unit == "sru":
            unit = SRU(
                d, self.n_units, self.n_stats, self.n_recurrent, self.scales, self.activation, first
            )
        else:
            unit = (GRU if self.unit == "gru" else LSTM)(d, self.n_units, first)
        head = eqx.nn.Linear(self.n_units, k, key=second)
        adds = bool(getattr(self, "difference", False))
        return SequenceNetwork(unit, head, eqx.nn.Dropout(self.dropout), self._per_point, adds)

    def _sizes(self, examples: Examples) -> dict[str, Any]:
        return {"length": examples.longest if self.max_length is None else self.max_length}

    @property
    @override
    def numbers_per_point(self) -> int:
        # the state and the outputs
        state = {"sru": self.n_stats * len(self.scales), "gru": self.n_units}
        return state.get(self.unit, 2 * self.n_units) + self.n_units

    def _padded(self, bags: Bags) -> tuple[np.ndarray, np.ndarray]:
        length = self._decided["length"]
        if self.max_length is None:
            length = max(length, int(bags.sizes.max()))
        return padded(bags, self._standards["points"], length)

    def _padded_to_train(self, bags: Bags, examples: Examples) -> tuple[np.ndarray, np.ndarray]:
        return padded(bags, self._standards["points"], self._decided["length"])


@documented
class SequenceRegressor(NetworkRegressor, SequenceEstimator):
    """Predict one number or several from each sequence with a recurrent network.

    A statistical recurrent unit, or a gated unit, reads the points of a bag in the order in which
    they are stored. Needs ``pip install 'bagbasis[neural]'``. Parameters and attributes are those
    of `SequenceEstimator` and `NeuralEstimator`.

    See Also
    --------
    SequenceClassifier : Classify sequences.
    NextPointRegressor : Predict the next point of a sequence.
    bagbasis.embeddings.SeriesEmbedding : Embed collections of time series.

    Notes
    -----
    Oliva 2018, chapter 7 (Oliva, Póczos and Schneider 2017).

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(0.5, 2.0, 60)
    >>> X = [rng.normal(0, s, (20, 1)) for s in y]
    >>> from bagbasis.neural import SequenceRegressor
    >>> model = SequenceRegressor(n_steps=20, validate_every=10).fit(X, y)
    >>> model.predict(X[:3]).shape
    (3,)
    """


@documented
class SequenceClassifier(NetworkClassifier, SequenceEstimator):
    """Classify sequences with a recurrent network.

    Attributes
    ----------
    classes_ : array, shape (n_classes,)
        Labels of the classes, in the order of the columns of `predict_proba`.

    See Also
    --------
    SequenceRegressor : Predict numbers from sequences.
    bagbasis.embeddings.SeriesEmbedding : Embed collections of time series.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(0.5, 2.0, 60)
    >>> X = [rng.normal(0, s, (20, 1)) for s in y]
    >>> from bagbasis.neural import SequenceClassifier
    >>> model = SequenceClassifier(n_steps=20, validate_every=10).fit(X, y > 1.25)
    >>> model.predict(X[:3]).shape
    (3,)
    """


@component
class NextPointRegressor(SequenceEstimator):
    """Predict the next point of a sequence from all points before it.

    The method is that of Oliva 2018, section 7.3.1. Parameters are those of `SequenceEstimator`,
    and

    Parameters
    ----------
    difference
        Whether x_{t+1} − x_t is learnt instead of x_{t+1}.
    standardize
        Whether the network gets coordinates with mean 0 and variance 1. False leaves them
        unchanged; gated units then saturate at large values (Oliva 2018, section 7.3.1).

    See Also
    --------
    SequenceRegressor : Predict numbers from sequences.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> from bagbasis.neural import NextPointRegressor
    >>> X = [np.sin(np.arange(20.0) + p)[:, np.newaxis] for p in rng.uniform(0, 6, 40)]
    >>> model = NextPointRegressor(n_steps=20, validate_every=10).fit(X)
    >>> model.predict(X[:3])[0].shape
    (20, 1)
    """

    difference: bool = False
    standardize: bool = True
    _per_point: ClassVar[bool] = True

    @checked
    def fit(self, X: BagsLike, y: object = None, *, progress: Progress | None = None) -> Self:
        """Train on sequences of two points or more.

        Parameters
        ----------
        X : Bags, list of (n_i, d) arrays, or BagStore
        y : object
            Ignored; present for compatibility with scikit-learn.
        progress : callable (steps done, steps in all), optional
            Function that is called with the progress of training.

        Raises
        ------
        DataError
            If no sequence has two points, or the loss is not finite.
        """
        check_parameters(self)
        examples = unlabelled_examples(X, self.batch_size, self.validation, self.seed)
        if examples.longest < 2:
            raise DataError("no sequence has two points: nothing follows anything")
        self._decide(examples, examples.bags.n_dims, {})
        if not self.standardize:
            self._standards["points"] = Standard.none(self._decided["n_dims"])
        self._learn(_next_points, examples, progress)
        return self

    def predict(self, X: BagsLike) -> Bags:
        """Return the expected next point after each point of each bag; row t predicts t + 1.

        Raises
        ------
        DataError
            If the estimator is not fitted, or the bags have another dimension.
        """
        return Bags.from_list([
            self._standards["points"].back(rows[:n])
            for bags, outputs in self._outputs(X)
            for rows, n in zip(outputs, bags.sizes.tolist(), strict=True)
        ])  # fmt: skip

    def score(self, X: BagsLike, y: None = None) -> float:
        """Return minus the mean over sequences of the mean squared distance to the next point.

        Raises
        ------
        DataError
            If the estimator is not fitted, or the bags have another dimension.
        """
        losses = []
        for bags in blocks_of(X, self.n_features_in_, self.coordinate_names):
            bags = bags[bags.sizes > 0]
            predicted = self.predict(bags) if len(bags) else bags
            for i in range(len(bags)):
                gaps = bags[i][1:] - predicted[i][:-1]
                if len(gaps):
                    losses.append(float((gaps.astype(np.float64) ** 2).sum(axis=1).mean()))
        return -float(np.mean(losses))


def _next_points(network: Network, batch: TrainingBatch, key: jax.Array) -> jax.Array:
    predicted = outputs_in_training(network, batch, key)[:, :-1]
    mask = batch[1][:, 1:]
    squares = ((predicted - batch[0][:, 1:]) ** 2).sum(axis=2) * mask
    return jnp.mean(squares.sum(axis=1) / jnp.maximum(mask.sum(axis=1), 1))
