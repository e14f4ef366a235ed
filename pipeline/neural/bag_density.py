"""`BagDensity`: the density of a bag's points, by networks that all bags share."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from ..core import (
    Integer,
    RandomSeed,
    check_parameters,
    checked,
    component,
    documented,
)
from ..core.arrays import Floats, Integers
from ..core.errors import DataError, ParameterError
from ..data.bags.bags import Bags, concatenate
from ..data.bags.responses import Responses
from ..data.labelled.inputs import BagsLike, LabelsLike, with_responses
from ..execution.progress import Progress
from .conditionals import TransformedDensity
from .declared import BatchSize, LayerWidth
from .deep_sets import DeepSet
from .estimator import shape_of
from .examples import (
    Examples,
    Minibatches,
    Standard,
    blocks_of,
    padded,
    thinned,
    unlabelled_examples,
)
from .tan import DensityEstimator, named_points
from .training import TrainingBatch


class BagNetwork(eqx.Module):
    """The embedding φ(X) of a bag and the density p(x | φ)."""

    embedding: DeepSet
    density: TransformedDensity


@component
class BagDensity(DensityEstimator):
    """Conditional density of points given a bag, in many dimensions; it can be sampled.

    A permutation-invariant network embeds the bag. A `TANDensity` that all bags share takes the
    embedding as its condition. In training, each point is scored given the other points of its bag
    (Oliva 2018, equation 8.19). With ``response=True``, the density of the bag's response is
    estimated instead, as by `TripleBasisRegressor` and `KernelSmoother`. Needs
    ``pip install 'bagbasis[neural]'``.

    Parameters
    ----------
    response
        Whether the density of responses is estimated instead of the density of the bags' points.
        Responses come from ``fit(bags, responses)`` or from a store.
    n_pooled
        Number of features of the embedding network that are averaged over points.
    n_condition
        Length of the embedding φ(X).
    max_points
        Largest number of points of a bag, and of a response, in a minibatch; larger bags and
        responses are thinned.

    See Also
    --------
    TANDensity : Autoregressive density of points.
    bagbasis.TripleBasisRegressor : Predict densities from bags.

    Notes
    -----
    Oliva 2018, section 8.4.5.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(0.5, 2.0, 60)
    >>> X = [rng.normal(0, s, (20, 1)) for s in y]
    >>> from bagbasis.neural import BagDensity
    >>> model = BagDensity(n_steps=20, validate_every=10).fit(X)
    >>> [len(x) for x in model.sample(X[:2], 5)]
    [5, 5]
    """

    response: bool = False
    n_pooled: LayerWidth = 64
    n_condition: LayerWidth = 16
    max_points: Annotated[int, Integer(2, 10**7)] = 128
    batch_size: BatchSize = 16

    def _network(self, key: jax.Array) -> BagNetwork:
        keys = jax.random.split(key, 3)
        density = self._density(self._decided["n_out_dims"], self.n_condition, keys)
        d, c = self._decided["n_dims"], self.n_condition
        return BagNetwork(DeepSet(d, self.n_pooled, self.n_hidden, c, keys[2]), density)

    @checked
    def fit(
        self, X: BagsLike, responses: LabelsLike = None, *, progress: Progress | None = None
    ) -> Self:
        """Train on bags, or on bags with responses.

        Parameters
        ----------
        X : Bags, list of (n_i, d) arrays, or BagStore
        responses : list of (m_i, k) arrays, optional
            Responses of bags in memory, for ``response=True``. An entry is None if the bag has no
            response.
        progress : callable (steps done, steps in all), optional
            Function that is called with the progress of training.

        Raises
        ------
        DataError
            If no bag has two points, there is no response, or the loss is not finite.
        ParameterError
            If responses are given without ``response=True``.
        """
        check_parameters(self)
        if responses is not None and not self.response:
            raise ParameterError("responses are given, but response is False: set response=True")
        options = (self.batch_size, self.validation, self.seed)
        answers: Bags | None = None
        if self.response:
            labelled = with_responses(X, responses)
            examples, answers = _with_answers(labelled, options)
        else:
            examples = unlabelled_examples(X, *options)
            if examples.longest < 2:
                raise DataError("no bag has two points: none can be scored given the others")
        out = answers.n_dims if answers is not None else examples.bags.n_dims
        self._decided = {**shape_of(examples.bags), "n_out_dims": out}
        if answers is not None and answers.coordinate_names is not None:
            self._decided["response_coordinates"] = answers.coordinate_names
        seen = examples.sample().points.astype(np.float64)
        self._standards = {"points": Standard.of(seen)}
        drawn = seen if answers is None else answers.points.astype(np.float64)
        self._standards["drawn"] = Standard.of(drawn)
        self._restore()
        n_drawn = 0 if answers is None else min(int(answers.sizes.max()), self.max_points)
        make = partial(self._batch, examples, answers, n_drawn)
        loss = _of_others if answers is None else _of_responses
        batches = Minibatches(examples, self.batch_size, make)
        self._train(loss, batches, examples, progress, answers)
        self.loss_ += float(np.log(self._standards["drawn"].scale).sum())
        return self

    def _batch(
        self, examples: Examples, answers: Bags | None, n_drawn: int, rows: Integers
    ) -> TrainingBatch:
        """Return padded bags, and at most ``max_points`` points of their responses, if any."""
        bags, _ = examples.take(rows)
        length = min(examples.longest, self.max_points)
        points, mask = padded(thinned(bags, length), self._standards["points"], length)
        if answers is None:
            return points, mask
        drawn = thinned(answers[np.sort(rows)], n_drawn)
        return points, mask, *padded(drawn, self._standards["drawn"], n_drawn)

    def embed(self, X: BagsLike) -> Floats:
        """Return the embeddings φ of bags from all their points, shape (n_bags, n_condition).

        Bags that were removed from a store have rows of NaN.

        Raises
        ------
        DataError
            If the estimator is not fitted, or the bags have another dimension.
        """
        self._check_fitted()
        vectors = []
        for bags in blocks_of(X, self.n_features_in_, self.coordinate_names):
            points, mask = padded(bags, self._standards["points"], int(bags.sizes.max()))
            rows = np.asarray(_embed(self.network_, jnp.asarray(points), jnp.asarray(mask)))
            vectors.append(np.where(bags.sizes[:, None] > 0, rows, np.nan))
        return np.concatenate(vectors).astype(np.float64)

    @property
    def _drawn_names(self) -> list[str] | None:
        """Names of the coordinates of the points whose density is estimated."""
        if not self.response:
            return self.coordinate_names
        names: list[str] | None = self._decided.get("response_coordinates")
        return names

    def log_density(self, X: BagsLike, points: ArrayLike) -> Floats:
        """Return log p(x | bag) for each bag at each point, shape (n_bags, m).

        Parameters
        ----------
        X : Bags, list of arrays, or BagStore
        points : array_like, shape (m, k)
            Points in the bags' own space, or in that of the responses.

        Raises
        ------
        DataError
            If the estimator is not fitted, or the bags or the points have another dimension.
        """
        conditions = self.embed(X).astype(np.float32)
        standard = self._standards["drawn"]
        names = self._drawn_names
        z = jnp.asarray(standard(named_points(points, self._decided["n_out_dims"], names)))
        rows = [np.asarray(_log_densities(self.network_, z, c)) for c in conditions]
        return np.array(rows, np.float64) - float(np.log(standard.scale).sum())

    def score(self, X: BagsLike, responses: LabelsLike = None) -> float:
        """Return the mean over bags of the mean log density of their points.

        With ``response=True`` these are the points of the responses. Otherwise the density of each
        point is taken given the other points of its bag.

        Raises
        ------
        DataError
            Not fitted, bags of another dimension, or no responses.
        """
        self._check_fitted()
        standard = self._standards["drawn"]
        shift = float(np.log(standard.scale).sum())
        if self.response:
            labelled = with_responses(X, responses)
            examples, answers = _with_answers(labelled, (1, 0.0, 0))
            answers = answers.in_order_of(
                self._drawn_names, what="responses", reference="the density was fitted on"
            )
            scores = []
            for row in range(len(answers)):
                bag, _ = examples.take(np.array([row]))
                scores.append(float(self.log_density(bag, answers[row]).mean()))
            return float(np.mean(scores))
        scores = []
        for bags in blocks_of(X, self.n_features_in_, self.coordinate_names):
            points, mask = padded(bags, standard, int(bags.sizes.max()))
            values = np.asarray(
                _given_others(self.network_, jnp.asarray(points), jnp.asarray(mask))
            )
            means = (values * mask).sum(axis=1) / mask.sum(axis=1)
            scores.extend((means[bags.sizes > 1] - shift).tolist())
        return float(np.mean(scores))

    @documented
    @checked
    def sample(
        self, X: BagsLike, n: Annotated[int, Integer(1, 10**7)], *, seed: RandomSeed = 0
    ) -> Bags:
        """Draw points from the density of each bag.

        Parameters
        ----------
        X : Bags, list of arrays, or BagStore
        n
            Number of points to draw for each bag.
        seed

        Raises
        ------
        DataError
            A bag that was removed from the store: it has no density.
        """
        conditions = self.embed(X).astype(np.float32)
        removed = np.flatnonzero(np.isnan(conditions).any(axis=1))
        if len(removed):
            raise DataError(f"bag {removed[0]} was removed from the store: it has no density")
        key = jax.random.key(seed % 2**32)
        return Bags.from_list([
            self._standards["drawn"].back(np.asarray(
                _samples(self.network_, condition, jax.random.split(jax.random.fold_in(key, i), n))
            ))
            for i, condition in enumerate(conditions)
        ])  # fmt: skip


def _with_answers(labelled: Any, options: tuple[int, float, int]) -> tuple[Examples, Bags]:
    """Return the bags that have a response, and these as bags in the same order."""
    index, parts = [], list[Bags]()
    for batch in labelled.batches():
        if not len(batch):
            continue
        responses: Responses = batch.labels
        full = np.flatnonzero(responses.sizes > 0)
        index.append(batch.index[full])
        if len(full):
            parts.append(responses.of(full))
    if not parts:
        raise DataError("no bag has a response")
    return Examples(labelled, np.concatenate(index), None, *options), concatenate(parts)


@eqx.filter_jit
def _embed(network: BagNetwork, points: jax.Array, mask: jax.Array) -> jax.Array:
    return jax.vmap(network.embedding)(points, mask)


@eqx.filter_jit
def _log_densities(network: BagNetwork, points: jax.Array, condition: jax.Array) -> jax.Array:
    return jax.vmap(network.density.log_density, (0, None))(points, condition)


@eqx.filter_jit
def _samples(network: BagNetwork, condition: jax.Array, keys: jax.Array) -> jax.Array:
    return jax.vmap(network.density.sample, (None, 0))(condition, keys)


@eqx.filter_jit
def _given_others(network: BagNetwork, points: jax.Array, mask: jax.Array) -> jax.Array:
    def of_bag(bag: jax.Array, there: jax.Array) -> jax.Array:
        conditions = network.embedding.without_each(bag, there)
        return jax.vmap(network.density.log_density)(bag, conditions)

    return jax.vmap(of_bag)(points, mask)


def _of_others(network: BagNetwork, batch: TrainingBatch, key: jax.Array) -> jax.Array:
    return -_mean_of(_given_others(network, batch[0], batch[1]), jnp.asarray(batch[1]))


def _of_responses(network: BagNetwork, batch: TrainingBatch, key: jax.Array) -> jax.Array:
    points, mask, drawn, there = batch
    conditions = jax.vmap(network.embedding)(points, mask)
    of_bag = jax.vmap(network.density.log_density, (0, None))
    return -_mean_of(jax.vmap(of_bag)(drawn, conditions), jnp.asarray(there))


def _mean_of(values: jax.Array, mask: jax.Array) -> jax.Array:
    """Return the mean over bags of the means over unmasked points."""
    return ((values * mask).sum(axis=1) / jnp.maximum(mask.sum(axis=1), 1)).mean()
