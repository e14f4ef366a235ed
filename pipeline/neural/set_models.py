"""`DeepSetsRegressor`, `DeepSetsClassifier`: the learned peer of the Double-Basis estimators."""

from __future__ import annotations

from typing import Any, ClassVar

import jax
import numpy as np

from ..bags import Bags
from ..parameters import Integer, Table
from ..parameters.neural import TRAINING
from .bag_networks import BagNetworkEstimator, NetworkClassifier, NetworkRegressor
from .deep_sets import DeepSet
from .examples import Examples, padded, thinned

SETS: Table = {
    "n_pooled": Integer(1, 100_000),
    "n_hidden": Integer(1, 100_000),
    "max_points": Integer(1, 10**7),
    **TRAINING,
}


class SetEstimator(BagNetworkEstimator):
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

    @property
    def numbers_per_point(self) -> int:
        """See `BagNetworkEstimator`: hidden layers and what is averaged."""
        return 2 * self.n_hidden + self.n_pooled

    def _sizes(self, examples: Examples) -> dict[str, Any]:
        return {"length": examples.longest}

    def _padded(self, bags: Bags) -> tuple[np.ndarray, np.ndarray]:
        return padded(bags, self._standards["points"], int(bags.sizes.max()))

    def _padded_to_train(self, bags: Bags, examples: Examples) -> tuple[np.ndarray, np.ndarray]:
        length = min(examples.longest, self.max_points)
        return padded(thinned(bags, length), self._standards["points"], length)


class DeepSetsRegressor(NetworkRegressor, SetEstimator):
    """Numbers of bags by a network that is learnt, mean pool and all.

    What `DoubleBasisRegressor` fixes in advance (the functions that are averaged) is learnt here,
    by thousands of minibatches in place of one pass. Needs ``pip install 'bagbasis[neural]'``.
    Parameters and attributes are those of `SetEstimator` and `NeuralEstimator`.
    """


class DeepSetsClassifier(NetworkClassifier, SetEstimator):
    """Classes of bags by a network that is learnt; see `DeepSetsRegressor`.

    Attributes
    ----------
    classes_ : array, shape (n_classes,)
    """
