"""Classifiers of regions: the probability that f matches a pattern on each region."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Annotated

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted
from typing_extensions import override

from ..core import Instance, checked, is_iterable
from ..core.arrays import Floats, Integers, as_array
from ..core.errors import DataError, ParameterError, shown
from ..data.bags.bags import Bags
from ..models.classifier import DoubleBasisClassifier
from .field import MAX_PLACES, Field

# Fraction of f's variance over a region below which an observation does not change it.
MIN_VARIANCE = 0.01
POINTS_PER_BATCH = 2**20  # points of the bags of one batch: 32 MiB with four coordinates


class RegionClassifier(ABC):
    """Base class: the probability that a function matches a pattern on each region.

    A subclass has to define `salience`. The match probabilities and the expected rewards are then
    computed by nested Monte Carlo (Sutherland 2016, section 7.3). `ProbitRegions` has closed forms
    of both.

    Attributes
    ----------
    regions : list of int64 arrays
        Places of each region, as row indices of a field's ``places``.

    See Also
    --------
    ProbitRegions : Regions with a closed-form match probability.
    BagRegions : Regions judged by a model of bags.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from bagbasis.search import Field, PatternSearch, ProbitRegions
    >>> places = np.arange(12.0)[:, np.newaxis]
    >>> weights = np.kron(np.eye(3), np.ones(4) / 4)  # means of three regions of four places
    >>> from bagbasis.search import RegionClassifier
    >>> isinstance(ProbitRegions(weights), RegionClassifier)
    True
    """

    regions: list[Integers]

    @abstractmethod
    def salience(self, draws: Floats, regions: Integers) -> Floats:
        """Return the salience h_g for each draw of f and region, shape (n_draws, len(regions)).

        Parameters
        ----------
        draws : float64, shape (n_draws, n_places, n_components)
            Draws of f.
        regions : int64
            Indices of the regions.
        """
        ...

    def check_field(self, field: Field) -> None:
        """Raise DataError if the field lacks a place of a region."""
        for i, places in enumerate(self.regions):
            if places.max() >= field.n_places:
                raise DataError(
                    f"region {i} has place {places.max()}; the field has {field.n_places} places"
                )

    @checked
    def chances(
        self, field: Field, regions: Integers, *, n_draws: int, rng: np.random.Generator
    ) -> Floats:
        """Return T_g = E h_g(f) given all observations (eq. 7.1), shape (len(regions),)."""
        chances: Floats = self.salience(field.draw(n_draws, seed=rng), regions).mean(axis=0)
        return chances

    @checked
    def expected_rewards(
        self,
        field: Field,
        candidates: Integers,
        *,
        regions: Integers,
        threshold: float,
        n_draws: tuple[int, int],
        rng: np.random.Generator,
    ) -> Floats:
        """Return Pr(T_g > threshold after one observation), shape (n_candidates, len(regions)).

        Equation 7.5 is estimated in two stages: observations z* are drawn, then f given each z*.
        All candidates share the same draws of f, which are updated by each z* in closed form. If an
        observation would lower the variance of a region's places by less than `MIN_VARIANCE`, the
        region's probability is assumed not to change.

        Parameters
        ----------
        candidates : int64
            Places that may be observed next.
        n_draws : tuple of int
            Numbers of draws of z*, and of f given each z*.
        """
        n_outer, n_inner = n_draws
        before = field.draw(n_outer * n_inner, seed=rng)
        unmoved = self.salience(before, regions).mean(axis=0) > threshold
        rewards = np.repeat(unmoved[None].astype(np.float64), len(candidates), axis=0)
        for row, place in zip(rewards, candidates.tolist(), strict=True):
            gain = field.gain(place)
            near = np.flatnonzero(self._reached(field, place, gain, regions))
            if len(near) == 0:
                continue
            spread = (field.variance[place] + field.noise) ** 0.5
            outcomes = field.mean[place] + spread * rng.standard_normal(
                (n_outer, field.n_components)
            )
            after = before.copy()
            values = np.repeat(outcomes, n_inner, axis=0)
            field.condition(after, place=place, gain=gain, values=values, rng=rng)
            salience = self.salience(after, regions[near]).reshape(n_outer, n_inner, -1)
            row[near] = (salience.mean(axis=1) > threshold).mean(axis=0)
        return rewards

    def _reached(
        self, field: Field, place: int, gain: Floats, regions: Integers
    ) -> NDArray[np.bool_]:
        lost = gain * field.covariance[place]  # decrease of the variance at each place
        least = MIN_VARIANCE * field.variance
        places = (self.regions[i] for i in regions.tolist())
        return np.array(
            [lost[region].sum() >= least[region].sum() for region in places], dtype=bool
        )


class BagRegions(RegionClassifier):
    """Regions judged by a fitted classifier of bags.

    Each region becomes a bag with one point per place. The points have the values of f and, with
    ``coordinates``, the relative positions of the places.

    Parameters
    ----------
    model : DoubleBasisClassifier
        Classifier that was fitted to such bags. Its `predict_proba` is the salience h_g, and only
        as well calibrated as the documentation of `predict_proba` says.
    regions : list of arrays of int
        Indices of the places of each region.
    label : int or str
        Class of the model that is the pattern.
    coordinates : array_like, shape (n_places, n_dims), optional
        Coordinates of each place, such as a field's ``places``. They are centred over the region
        and are the first coordinates of a bag's points; the values of f follow. Default: the points
        have only the values of f.

    See Also
    --------
    PatternSearch : Choose where to observe next.
    ProbitRegions : Regions with a closed-form match probability.

    Examples
    --------
    >>> import numpy as np
    >>> from bagbasis import DoubleBasisClassifier
    >>> from bagbasis.search import BagRegions
    >>> rng = np.random.default_rng(0)
    >>> X = [rng.normal(m, 1, (10, 1)) for m in np.repeat([0.0, 3.0], 30)]
    >>> y = np.repeat(['low', 'high'], 30)
    >>> model = DoubleBasisClassifier('moments', alpha=1e-3).fit(X, y)
    >>> regions = BagRegions(model, [[0, 1, 2], [3, 4, 5]], label='high')
    >>> len(regions.regions)
    2
    """

    @checked
    def __init__(
        self,
        model: Annotated[DoubleBasisClassifier, Instance()],
        regions: Sequence[ArrayLike],
        *,
        label: int | str,
        coordinates: ArrayLike | None = None,
    ) -> None:
        check_is_fitted(model, "coef_")
        classes = model.classes_.tolist()
        if label not in classes:
            raise ParameterError(f"label is {shown(label)}; the model's classes are {classes}")
        self.model, self._column = model, classes.index(label)
        self.regions = as_regions(regions)
        self._coordinates = self._relative(coordinates)

    @override
    def salience(self, draws: Floats, regions: Integers) -> Floats:
        chosen = [self.regions[i] for i in regions.tolist()]
        if not chosen:
            return np.empty((len(draws), 0))
        places = np.concatenate(chosen)
        first = np.concatenate([self._coordinates[i] for i in regions.tolist()])
        sizes = np.array([len(region) for region in chosen])
        result = np.empty((len(draws), len(chosen)))
        step = max(1, POINTS_PER_BATCH // len(places))
        for start in range(0, len(draws), step):
            values = draws[start : start + step, places]
            points = np.empty((*values.shape[:2], first.shape[1] + values.shape[2]))
            points[..., : first.shape[1]] = first
            points[..., first.shape[1] :] = values
            offsets = np.concatenate([[0], np.tile(sizes, len(values)).cumsum()])
            bags = Bags.trusted(points.reshape(-1, points.shape[2]), offsets)
            chances = self.model.predict_proba(bags)[:, self._column]
            result[start : start + step] = chances.reshape(len(values), -1)
        return result

    def _relative(self, coordinates: ArrayLike | None) -> list[Floats]:
        """Return the coordinates of the places of each region, centred over the region."""
        if coordinates is None:
            return [np.empty((len(places), 0)) for places in self.regions]
        positions = as_array("coordinates", coordinates, np.float64)
        most = max(int(places.max()) for places in self.regions)
        if positions.ndim != 2 or len(positions) <= most or not np.isfinite(positions).all():
            raise DataError(
                f"coordinates have shape {positions.shape}; expected finite numbers of {most + 1} "
                "places or more, a row each"
            )
        return [positions[places] - positions[places].mean(axis=0) for places in self.regions]


def as_regions(regions: Sequence[ArrayLike]) -> list[Integers]:
    """Return the places of each region; raise DataError for an empty or non-integer region."""
    if not is_iterable(regions):
        raise DataError(f"regions is {shown(regions)}; expected a list of arrays")
    arrays = []
    for i, region in enumerate(regions):
        places = as_array(f"region {i}", region)
        if places.ndim != 1 or places.size == 0 or places.dtype.kind not in "iu":
            raise DataError(
                f"region {i} has shape {places.shape} and dtype {places.dtype}; expected the "
                "places of it, integers"
            )
        if places.min() < 0 or places.max() >= MAX_PLACES:
            raise DataError(f"region {i} has places {shown(region)}; expected 0 to {MAX_PLACES}")
        arrays.append(places.astype(np.int64))
    if not arrays:
        raise DataError("there are no regions")
    return arrays
