"""`Field`: a Gaussian process at finitely many places, conditioned on its observations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg.lapack import dpstrf

from ..core import Function, Integer, Real, Seed, checked
from ..core.arrays import Floats, as_array
from ..core.errors import DataError, ParameterError

MAX_PLACES = 10_000  # the covariance of so many places takes 800 MB
_MAX_COMPONENTS = 1_000
MAX_DRAWN = 2**28  # numbers of one set of draws: 2 GiB
# Relative to the largest variance: more than this is not rounding of a kernel's values.
_COVARIANCE_ROUNDING = 1e-8


@dataclass(frozen=True)
class Observation:
    """One observation; it moves the means by gain × (observed value − expected value).

    Attributes
    ----------
    place : int
        Index of the observed place.
    values : float64, shape (n_components,)
        Observed values.
    gain : float64, shape (n_places,)
        κ(·, x)/V of the process before the observation.
    """

    place: int
    values: Floats
    gain: Floats


class Field:
    """A function of places with a Gaussian-process prior, observed with noise.

    An observation gives a new `Field`, whose mean and covariance are conditioned on it. The
    components of a vector-valued f are independent, share one kernel and are observed together.

    Parameters
    ----------
    places : array_like, shape (n_places, n_dims)
        Coordinates of the places at which f may be observed, and at which regions evaluate f.
    kernel : callable (places, places) → covariances (n_places, n_places)
        Covariance function, such as those of `sklearn.gaussian_process.kernels`. To learn one, fit
        scikit-learn's `GaussianProcessRegressor` and take its ``kernel_``.
    noise : float > 0
        Variance of the error of an observation.
    n_components : int
        Number of components of f.
    prior_mean : float
        Prior mean of every component at every place.

    Attributes
    ----------
    mean : float64, shape (n_places, n_components)
        Posterior mean of f at each place.
    covariance : float64, shape (n_places, n_places)
        Posterior covariance of each component.
    observations : tuple of Observation
        All observations, in their order.

    Raises
    ------
    DataError
        If the places or the covariances are not valid.

    See Also
    --------
    PatternSearch : Choose where to observe next.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from bagbasis.search import Field
    >>> field = Field(np.arange(10.0)[:, np.newaxis], 4 * RBF(2.0), noise=0.01)
    >>> field = field.observe(3, 1.5)
    >>> field.mean.shape
    (10, 1)
    >>> bool(field.variance[3] < field.variance[9])  # place 3 was observed
    True
    >>> field.draw(5).shape
    (5, 10, 1)
    """

    mean: Floats
    covariance: Floats
    observations: tuple[Observation, ...]

    @checked
    def __init__(
        self,
        places: ArrayLike,
        kernel: Annotated[Callable[..., Any], Function],
        *,
        noise: Annotated[float, Real(gt=0)] = 0.01,
        n_components: Annotated[int, Integer(1, _MAX_COMPONENTS)] = 1,
        prior_mean: float = 0.0,
    ) -> None:
        self.places = _as_places(places)
        self.noise = noise
        self.n_components = n_components
        self.prior_mean = prior_mean
        self.covariance = _covariances(kernel, self.places)
        self.mean = np.full((len(self.places), self.n_components), self.prior_mean)
        self.observations = ()
        self._root = _root(self.covariance)

    @property
    def n_places(self) -> int:
        """Number of places."""
        return len(self.places)

    @property
    def variance(self) -> Floats:
        """Posterior variance of each component of f at each place, shape (n_places,)."""
        return self.covariance.diagonal().clip(0)  # rounding of many updates

    def gain(self, place: int) -> Floats:
        """Return the gain of an observation: the shift of each mean per unit, shape (n_places,).

        The mean at each place moves by the gain times (observed value − expected value). The gain
        is κ(·, x)/V with V = κ(x, x) + noise (Sutherland 2016, before eq. 7.10).
        """
        place = self.check_place(place)
        column: Floats = self.covariance[:, place]
        return column / (float(column[place]) + self.noise)

    @checked
    def observe(self, place: int, values: ArrayLike) -> Self:
        """Return a new field with one more observation of all components.

        The field itself does not change.

        Parameters
        ----------
        place : int
            Row of ``places``. A place may be observed several times.
        values : float or array, shape (n_components,)
            Observed value of each component.
        """
        gain = self.gain(place)
        vector = np.atleast_1d(as_array("values", values, np.float64))
        if vector.shape != (self.n_components,) or not np.isfinite(vector).all():
            raise DataError(
                f"values have shape {vector.shape}; expected {self.n_components} finite numbers"
            )
        after = object.__new__(type(self))
        after.__dict__.update(self.__dict__)
        with np.errstate(over="ignore", invalid="ignore"):
            after.mean = self.mean + np.outer(gain, vector - self.mean[place])
        if not np.isfinite(after.mean).all():
            raise DataError("values are too large: means would not be finite")
        after.covariance = self.covariance - np.outer(gain, self.covariance[place])
        after.observations = (*self.observations, Observation(int(place), vector, gain))
        return after

    def draw(self, n_draws: int, *, seed: int | np.random.Generator = 0) -> Floats:
        """Return draws of f given all observations, shape (n_draws, n_places, n_components).

        Draws from the prior are updated by each observation with a new draw of its noise
        (Matheron's rule). The draws are exact, and no matrix is factorised again.
        """
        n_draws = Integer(1).check("n_draws", n_draws)
        if n_draws * self.mean.size > MAX_DRAWN:
            raise ParameterError(f"n_draws is {n_draws}: {n_draws * self.mean.size:,} numbers")
        rng = seeded(seed)
        normals = rng.standard_normal((n_draws, self.n_components, self._root.shape[1]))
        draws = self.prior_mean + np.swapaxes(normals @ self._root.T, 1, 2)
        for observation in self.observations:
            self.condition(
                draws,
                place=observation.place,
                gain=observation.gain,
                values=observation.values,
                rng=rng,
            )
        return np.asarray(draws)

    @checked
    def condition(
        self, draws: Floats, *, place: int, gain: Floats, values: Floats, rng: np.random.Generator
    ) -> None:
        """Condition draws of f, (k, n_places, n_components), on one more observation, in place.

        ``values`` has shape (n_components,), or (k, n_components) for different values per draw.
        """
        noise = self.noise**0.5 * rng.standard_normal((len(draws), self.n_components))
        draws += (values - draws[:, place] - noise)[:, None] * gain[:, None]

    def check_place(self, place: object) -> int:
        """Return the index of a row of ``places``; raise ParameterError for anything else."""
        return Integer(0, self.n_places - 1).check("place", place)


def seeded(seed: object) -> np.random.Generator:
    """Return the given generator, or a new one from a seed; raise for anything else."""
    if isinstance(seed, np.random.Generator):
        return seed
    return np.random.default_rng(Seed.check("seed", seed))


def _as_places(places: ArrayLike) -> Floats:
    array = as_array("places", places, np.float64)
    if array.ndim != 2 or array.size == 0 or len(array) > MAX_PLACES:
        raise DataError(
            f"places have shape {array.shape}; expected (n_places, n_dims), up to {MAX_PLACES:,}"
        )
    finite = np.isfinite(array).all(axis=1)
    if not finite.all():
        raise DataError(f"place {int(finite.argmin())} has a coordinate that is not finite")
    return array


def _covariances(kernel: Callable[..., Any], places: Floats) -> Floats:
    """Return κ of all places; called with two arguments, scikit-learn's omits white noise."""
    try:
        covariances = as_array("kernel's covariances", kernel(places, places), np.float64)
    except DataError:
        raise
    except Exception as error:  # the user's function may raise any exception
        raise ParameterError(f"kernel fails on places of shape {places.shape}: {error}") from error
    n = len(places)
    if covariances.shape != (n, n) or not np.isfinite(covariances).all():
        raise DataError(
            f"kernel gives shape {covariances.shape}; expected ({n}, {n}) finite numbers"
        )
    if np.abs(covariances - covariances.T).max() > _COVARIANCE_ROUNDING * np.abs(covariances).max():
        raise DataError("kernel gives covariances that are not symmetric")
    return covariances


def _root(covariance: Floats) -> Floats:
    """Return R with R Rᵀ = the covariance, shape (n_places, rank): Cholesky with pivots.

    The matrix of a smooth kernel is numerically singular, so that plain Cholesky fails.
    """
    factor, pivots, rank, _ = dpstrf(covariance, lower=1)
    root = np.empty((len(covariance), rank))
    root[pivots - 1] = np.tril(factor)[:, :rank]
    if np.abs(root @ root.T - covariance).max() > _COVARIANCE_ROUNDING * np.abs(covariance).max():
        raise DataError("kernel gives covariances that are not positive semi-definite")
    return root
