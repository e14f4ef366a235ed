"""`derivative_norms`: sensitivity of a fitted model's predictions to each coordinate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core import Integer, RandomSeed, Real, checked, documented
from ...core.arrays import Floats
from ...core.errors import DataError, ParameterError, shown
from ...data.bags.bags import Bags, as_bags


class Predictor(Protocol):
    """A fitted model whose ``predict`` maps bags to numbers, shape (n,) or (n, q)."""

    def predict(self, X: Bags) -> NDArray[np.floating]:
        """Return a number or a row per bag."""
        ...


@dataclass(frozen=True, eq=False)
class DerivativeNorms:
    """Result of `derivative_norms`: the norm of the derivative along each coordinate.

    Attributes
    ----------
    norms : float64, shape (d,)
        Root of the mean over bags of n Σ_i (∂F/∂x_ij)², times the coordinate's standard deviation,
        in units of the prediction. For bags of one point this is ‖∂_j f‖ of Rosasco et al.
    standard_errors : float64, shape (d,)
        Standard error of each norm, over bags.

    See Also
    --------
    derivative_norms : Sensitivity to each coordinate.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(-1.0, 1.0, 80)
    >>> X = [rng.normal([m, 0.0], 1.0, (30, 2)) for m in y]
    >>> from bagbasis import DoubleBasisRegressor
    >>> from bagbasis.hypotheses import derivative_norms
    >>> model = DoubleBasisRegressor('moments', alpha=1e-3).fit(X, y)
    >>> result = derivative_norms(model, X)
    >>> result.norms.shape, result.standard_errors.shape
    ((2,), (2,))
    >>> result.selected(1)  # the steepest coordinate
    array([0])
    """

    norms: Floats
    standard_errors: Floats

    def selected(self, k: int) -> NDArray[np.int64]:
        """Return the k coordinates with the largest norms, the largest first."""
        count = Integer(1, len(self.norms)).check("k", k)
        return np.argsort(-self.norms, kind="stable")[:count]


@documented
@checked
def derivative_norms(
    model: Predictor,
    X: Bags | list[ArrayLike],
    *,
    n_draws: Annotated[int, Integer(1, 10000)] = 4,
    step: Annotated[float, Real(gt=0, le=1)] = 0.02,
    seed: RandomSeed = 0,
) -> DerivativeNorms:
    """Return how strongly a fitted model's predictions depend on each coordinate.

    An irrelevant coordinate has derivative 0 everywhere, whatever the interactions of the other
    coordinates (Szabó; Rosasco et al. 2013). All points of a bag are moved at once by ± step, with
    random signs. The mean square of the change of the prediction estimates the sum of the points'
    squared derivatives.

    Parameters
    ----------
    model : fitted estimator of bags
        Any fitted model whose ``predict`` maps bags to numbers.
    X : Bags or list of arrays
        Bags in memory at which the derivatives are taken.
    n_draws
        Number of draws of signs for each coordinate. Each draw takes two predictions of all bags.
    step
        Step in standard deviations of the coordinate. Much smaller steps are lost in the rounding
        of float32 embeddings.
    seed
        Seed for drawing signs.

    Raises
    ------
    ParameterError
        If ``model`` is not a fitted model.
    DataError
        If there are no bags, or the predictions are not numbers.

    See Also
    --------
    DerivativeNorms : Result of `derivative_norms`.
    bagbasis.models.permutation_importance : Importance of each coordinate.
    bagbasis.models.explain : Explain the prediction of one bag.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(-1.0, 1.0, 80)
    >>> X = [rng.normal([m, 0.0], 1.0, (30, 2)) for m in y]
    >>> from bagbasis import DoubleBasisRegressor
    >>> from bagbasis.hypotheses import derivative_norms
    >>> model = DoubleBasisRegressor('moments', alpha=1e-3).fit(X, y)
    >>> norms = derivative_norms(model, X).norms
    >>> int(np.argmax(norms))  # the coordinate that predictions depend on most
    0
    """
    if not callable(getattr(model, "predict", None)):
        raise ParameterError(f"model is {shown(model)}; expected a fitted model of bags")
    bags = as_bags(X)
    if len(bags) == 0:
        raise DataError("no bags to take derivatives at")
    rng = np.random.default_rng(seed)
    points = bags.points.astype(np.float64)
    spread = points.std(axis=0)
    squares = np.zeros((len(bags), bags.n_dims))
    for j in range(bags.n_dims):
        for _ in range(n_draws):
            move = step * spread[j] * rng.choice([-1.0, 1.0], len(points))
            ends = [_predict(model, bags, points, j, sign * move) for sign in (1, -1)]
            change = (ends[0] - ends[1]) / (2 * step)
            squares[:, j] += (change**2).sum(axis=1) / n_draws
    squares *= bags.sizes[:, None]
    mean = squares.mean(axis=0)
    norms = np.sqrt(mean)
    errors = squares.std(axis=0, ddof=min(1, len(bags) - 1)) / len(bags) ** 0.5
    return DerivativeNorms(norms, errors / (2 * np.maximum(norms, 1e-300)))


def _predict(model: Predictor, bags: Bags, points: Floats, j: int, move: Floats) -> Floats:
    moved = points.copy()
    moved[:, j] += move
    predicted = np.asarray(model.predict(Bags(moved, bags.offsets).named(bags.coordinate_names)))
    if predicted.dtype.kind not in "iuf" or len(predicted) != len(bags):
        raise DataError(
            f"the model predicts shape {predicted.shape} of {predicted.dtype}; expected numbers, "
            "one row per bag"
        )
    return predicted.reshape(len(bags), -1).astype(np.float64)
