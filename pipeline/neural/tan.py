"""`TANDensity`: normalised densities of points in many dimensions, by neural networks."""

from __future__ import annotations

from typing import Annotated, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from ..core import (
    Integer,
    OneOf,
    RandomSeed,
    check_parameters,
    checked,
    component,
    documented,
)
from ..core.arrays import Floats, as_array
from ..core.errors import DataError
from ..data.bags.bags import Bags
from ..data.bags.coordinates import Names, order_of
from ..data.bags.frames import names_of_table
from ..data.labelled.inputs import BagsLike
from ..data.store.store import BagStore
from ..execution.progress import Progress
from .conditionals import CONDITIONALS, TransformedDensity
from .declared import BatchSize, Count, Decay, Rate
from .estimator import NeuralEstimator, shape_of
from .examples import Examples, Standard, unlabelled_examples
from .training import TrainingBatch
from .transformations import CHAINS, make_chain

JUDGED_AT_ONCE = 4096  # points
MAX_VALIDATION = 20_000  # points that judge a step's network


@component
class DensityEstimator(NeuralEstimator):
    """Base: a density of points by a transformation and an autoregressive network.

    Parameters
    ----------
    conditional
        Model of p(z_i | z_<i): "lam" has a linear state per coordinate, "ram" a recurrent state,
        "tied" linear states with a shared matrix, "multi_ind" mixtures that do not depend on other
        coordinates, "single_ind" standard normal distributions.
    transformation : one of `transformations.CHAINS`
        Transformation z = q(x), by its name in the paper's tables: "none", "rnn", "2xrnn",
        "4xadd+re", "4xsrnn+re", "rnn+4xadd+re" or "rnn+4xsrnn+re". "rnn" is a recurrent
        transformation. "add" is an additive one and "srnn" a recurrent shift, both with reversals
        in between. "re" is a final rescaling.
    linear
        Whether the linear transformation z = L U x + b comes first ("L" in the tables).
    n_components
        Number of components of each mixture.
    n_hidden
        Number of units of states and networks.
    """

    conditional: Annotated[str, OneOf(*CONDITIONALS)] = "lam"
    transformation: Annotated[str, OneOf(*CHAINS)] = "4xadd+re"
    linear: bool = True
    n_components: Annotated[int, Integer(1, 10_000)] = 10
    n_hidden: Annotated[int, Integer(2, 100_000)] = 64
    decay: Decay = 0.5
    decay_steps: Count = 1000
    n_steps: Count = 4000
    validate_every: Count = 200

    def _density(self, n_dims: int, n_condition: int, keys: jax.Array) -> TransformedDensity:
        """Return the network of a density of points with so many coordinates, before training."""
        chain = make_chain(
            self.transformation, self.linear, n_dims, self.n_hidden, n_condition, keys[0]
        )
        conditional = CONDITIONALS[self.conditional](
            n_dims, self.n_hidden, self.n_hidden, self.n_components, n_condition, keys[1]
        )
        return TransformedDensity(chain, conditional, n_dims)


@component
class TANDensity(DensityEstimator):
    """Density of points by a transformation and an autoregressive network.

    The density is normalised in any dimension, and samples from it are exact. Needs ``pip install
    'bagbasis[neural]'``.

    Parameters
    ----------
    batch_size
        Number of points in a minibatch.
    validation
        Fraction of the points that are held out; the network with the smallest loss on these points
        is kept.
    validate_every
        Number of steps between two evaluations on the held-out points.

    Attributes
    ----------
    loss_ : float
        Negative mean log density of the held-out points.

    See Also
    --------
    BagDensity : Conditional density of points given a bag.
    bagbasis.densities.ExponentialFamilyDensity : Density estimate by score matching.

    Notes
    -----
    Oliva 2018, chapter 8 (Oliva et al. 2018). Training is as in `SequenceRegressor`.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> from bagbasis.neural import TANDensity
    >>> x = rng.normal(size=(200, 2))
    >>> model = TANDensity(n_steps=20, validate_every=10).fit(x)
    >>> model.log_density(x[:5]).shape  # score_samples is another name for it
    (5,)
    """

    learning_rate: Rate = 0.005
    batch_size: BatchSize = 256

    def _network(self, key: jax.Array) -> TransformedDensity:
        return self._density(self._decided["n_dims"], 0, jax.random.split(key))

    @checked
    def fit(
        self, X: ArrayLike | BagsLike, y: object = None, *, progress: Progress | None = None
    ) -> Self:
        """Train on points.

        Parameters
        ----------
        X : array (n, d), Bags, list of arrays, or BagStore
            Points. The points of all bags are pooled; each minibatch has whole bags.
        y : object
            Ignored; present for compatibility with scikit-learn.
        progress : callable (steps done, steps in all), optional
            Function that is called with the progress of training.

        Raises
        ------
        DataError
            If there are too few points, or the loss is not finite.
        """
        check_parameters(self)
        bags = point_bags(X)
        size = self.batch_size
        if isinstance(bags, Bags):  # single points, so that batches and folds are of points
            single = Bags(bags.points, np.arange(len(bags.points) + 1))
            bags = single.named(bags.coordinate_names)
        else:
            size = max(1, round(size * bags.n_bags / max(1, bags.n_points)))
        examples = unlabelled_examples(bags, size, self.validation, self.seed)
        self._decided = shape_of(examples.bags)
        self._standards = {"points": Standard.of(examples.sample().points.astype(np.float64))}
        self._restore()
        self._train(_negative_log, PointBatches(self, examples), examples, progress)
        self.loss_ += float(np.log(self._standards["points"].scale).sum())
        return self

    def log_density(self, X: ArrayLike) -> Floats:
        """Return log p at points, shape (n,), per unit of volume of the data.

        Raises
        ------
        DataError
            If the estimator is not fitted, or the points have another dimension.
        """
        self._check_fitted()
        points = named_points(X, self.n_features_in_, self.coordinate_names)
        standard = self._standards["points"]
        z = jnp.asarray(standard(points))
        parts = [z[start : start + JUDGED_AT_ONCE] for start in range(0, len(z), JUDGED_AT_ONCE)]
        densities = [np.asarray(_log_densities(self.network_, part)) for part in parts]
        values = np.concatenate(densities) if densities else np.empty(0)
        return values.astype(np.float64) - float(np.log(standard.scale).sum())

    def score_samples(self, X: ArrayLike) -> Floats:
        """Return `log_density`, under scikit-learn's name; low values indicate anomalies.

        Raises
        ------
        DataError
            If the estimator is not fitted, or the points have another dimension.
        """
        return self.log_density(X)

    def score(self, X: ArrayLike, y: object = None) -> float:
        """Return the mean log density of points.

        Raises
        ------
        DataError
            If the estimator is not fitted, or the points have another dimension.
        """
        return float(self.log_density(X).mean())

    @documented
    @checked
    def sample(self, n: Annotated[int, Integer(1, 10**8)], *, seed: RandomSeed = 0) -> Floats:
        """Draw points, shape (n, d).

        Parameters
        ----------
        n
        seed
        """
        self._check_fitted()
        keys = jax.random.split(jax.random.key(seed % 2**32), n)
        samples = [
            np.asarray(_samples(self.network_, keys[start : start + JUDGED_AT_ONCE]))
            for start in range(0, n, JUDGED_AT_ONCE)
        ]
        return self._standards["points"].back(np.concatenate(samples))


class PointBatches:
    """Minibatches of standardised points."""

    def __init__(self, model: TANDensity, examples: Examples) -> None:
        self.standard, self.examples = model._standards["points"], examples  # noqa: SLF001

    def batch(self, step: int) -> TrainingBatch:
        """Return the minibatch of a step; a pure function of its number."""
        return (self._points(self.examples.rows_of(step)),)

    def validation(self) -> list[TrainingBatch]:
        """Return the batches that the network is judged by; empty: by nothing."""
        rows = self.examples.held_out
        if not len(rows):
            return []
        points = self._points(rows)[:MAX_VALIDATION]
        return [(part,) for part in np.array_split(points, -(-len(points) // JUDGED_AT_ONCE))]

    def _points(self, rows: np.ndarray) -> np.ndarray:
        return self.standard(self.examples.take(rows)[0].points)


def point_bags(X: ArrayLike | BagsLike) -> Bags | BagStore:
    """Return the bags of points, or single points of an array as bags.

    Raises
    ------
    DataError
        No points.
    """
    if isinstance(X, (Bags, BagStore)):
        return X
    if isinstance(X, np.ndarray) and X.dtype != object and X.ndim < 3:
        points = as_array("X", X, np.float64)
        points = points[:, None] if points.ndim == 1 else points
        return Bags(points, np.arange(len(points) + 1))
    return Bags.from_list(X)  # type: ignore[arg-type]  # refuses what is not a list of arrays


def named_points(X: ArrayLike, n_dims: int, names: Names) -> Floats:
    """Return points (n, n_dims); a vector is of points in one dimension.

    Columns of a frame are put into the order of ``names``.

    Raises
    ------
    DataError
        If the points have another dimension or other names, or are not finite.
    """
    order = order_of(names_of_table(X), names, "X", "the density was fitted on")
    points = as_array("X", X, np.float64)
    points = points if order is None else points[:, order]
    points = points[:, None] if points.ndim == 1 and n_dims == 1 else points
    if points.ndim != 2 or points.shape[1] != n_dims:
        raise DataError(f"X has shape {points.shape}; expected points (n, {n_dims})")
    if not np.isfinite(points).all():
        raise DataError("X holds NaN or infinity")
    return points


NO_CONDITION = jnp.zeros(0)  # the condition of an unconditional density


@eqx.filter_jit
def _log_densities(network: TransformedDensity, points: jax.Array) -> jax.Array:
    return jax.vmap(network.log_density, (0, None))(points, NO_CONDITION)


@eqx.filter_jit
def _samples(network: TransformedDensity, keys: jax.Array) -> jax.Array:
    return jax.vmap(network.sample, (None, 0))(NO_CONDITION, keys)


def _negative_log(network: TransformedDensity, batch: TrainingBatch, key: jax.Array) -> jax.Array:
    return -jax.vmap(network.log_density, (0, None))(batch[0], NO_CONDITION).mean()
