"""`DeepSetsRegressor`, `DeepSetsClassifier`: the neural counterparts of Double-Basis estimators."""

from __future__ import annotations

from typing import Annotated, Any

import jax
import numpy as np
from typing_extensions import override

from ..core import Integer, component, documented
from ..data.bags.bags import Bags
from .bag_networks import BagNetworkEstimator, NetworkClassifier, NetworkRegressor
from .declared import Decay, LayerWidth
from .deep_sets import DeepSet
from .examples import Examples, padded, thinned


@component
class SetEstimator(BagNetworkEstimator):
    """Base: a network of each point, the mean over the bag, a network of the mean.

    Parameters
    ----------
    n_pooled
        Number of features that are averaged over points.
    n_hidden
        Number of units of the layers of both networks.
    max_points
        Largest number of points of a bag in a minibatch: larger bags are thinned by evenly spread
        points. Predictions use all points.
    """

    n_pooled: LayerWidth = 64
    n_hidden: LayerWidth = 64
    max_points: Annotated[int, Integer(1, 10**7)] = 512
    decay: Decay = 0.7

    def _network(self, key: jax.Array) -> DeepSet:
        d, k = self._decided["n_dims"], self._decided["n_outputs"]
        return DeepSet(d, self.n_pooled, self.n_hidden, k, key)

    @property
    @override
    def numbers_per_point(self) -> int:
        # hidden layers and what is averaged
        return 2 * self.n_hidden + self.n_pooled

    def _sizes(self, examples: Examples) -> dict[str, Any]:
        return {"length": examples.longest}

    def _padded(self, bags: Bags) -> tuple[np.ndarray, np.ndarray]:
        return padded(bags, self._standards["points"], int(bags.sizes.max()))

    def _padded_to_train(self, bags: Bags, examples: Examples) -> tuple[np.ndarray, np.ndarray]:
        length = min(examples.longest, self.max_points)
        return padded(thinned(bags, length), self._standards["points"], length)


@documented
class DeepSetsRegressor(NetworkRegressor, SetEstimator):
    """Predict one number or several from each bag with a neural network (deep sets).

    The network learns the functions that are averaged over a bag, which `DoubleBasisRegressor`
    fixes in advance. Training takes thousands of minibatches instead of one pass. Needs
    ``pip install 'bagbasis[neural]'``. Parameters and attributes are those of `SetEstimator` and
    `NeuralEstimator`.

    See Also
    --------
    DeepSetsClassifier : Classify bags with a neural network.
    bagbasis.DoubleBasisRegressor : Predict numbers from bags.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(0.5, 2.0, 60)
    >>> X = [rng.normal(0, s, (20, 1)) for s in y]
    >>> from bagbasis.neural import DeepSetsRegressor
    >>> model = DeepSetsRegressor(n_steps=20, validate_every=10).fit(X, y)
    >>> model.predict(X[:3]).shape
    (3,)
    """


@documented
class DeepSetsClassifier(NetworkClassifier, SetEstimator):
    """Classify bags with a neural network (deep sets).

    Attributes
    ----------
    classes_ : array, shape (n_classes,)
        Labels of the classes, in the order of the columns of `predict_proba`.

    See Also
    --------
    DeepSetsRegressor : Predict numbers with a neural network.
    bagbasis.DoubleBasisClassifier : Classify bags.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(0.5, 2.0, 60)
    >>> X = [rng.normal(0, s, (20, 1)) for s in y]
    >>> from bagbasis.neural import DeepSetsClassifier
    >>> model = DeepSetsClassifier(n_steps=20, validate_every=10).fit(X, y > 1.25)
    >>> model.predict(X[:3]).shape
    (3,)
    """
