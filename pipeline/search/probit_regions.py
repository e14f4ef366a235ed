"""`ProbitRegions`: linear classifiers of regions with probabilities in closed form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri
from typing_extensions import override

from ..core import Integer, checked
from ..core.arrays import Floats, Integers, as_array
from ..core.errors import DataError
from .field import MAX_PLACES, Field
from .regions import RegionClassifier, as_regions


class ProbitRegions(RegionClassifier):
    """Regions that match if a weighted sum of values is high, with exact probabilities.

    The salience of region g is h_g(f) = Φ(L_g f + b_g), with L_g f a weighted sum of the values of
    f (Sutherland 2016, eq. 7.7). For other functions of f use `BagRegions` or a subclass of
    `RegionClassifier`.

    Parameters
    ----------
    weights : array_like, shape (n_regions, n_places) or (n_regions, n_places, n_components)
        Weights L_g of each region.
    offsets : float or array, shape (n_regions,)
        Offset b_g of each region, or one offset for all regions.

    See Also
    --------
    PatternSearch : Choose where to observe next.
    BagRegions : Regions judged by a model of bags.
    RegionClassifier : Base class of region classifiers.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from bagbasis.search import ProbitRegions
    >>> places = np.arange(12.0)[:, np.newaxis]
    >>> weights = np.kron(np.eye(3), np.ones(4) / 4)  # means of three regions of four places
    >>> regions = ProbitRegions(weights, offsets=-1.0)
    >>> regions.weights.shape
    (3, 12, 1)
    >>> thirds = np.split(np.arange(12), 3)
    >>> ProbitRegions.of_means(thirds, n_places=12, scale=1.0, offset=-1.0).weights.shape
    (3, 12, 1)
    """

    def __init__(self, weights: ArrayLike, offsets: ArrayLike = 0.0) -> None:
        array = as_array("weights", weights, np.float64)
        array = array[..., None] if array.ndim == 2 else array
        if array.ndim != 3 or array.size == 0 or not np.isfinite(array).all():
            raise DataError(
                f"weights have shape {np.shape(weights)}; expected finite numbers (n_regions, "
                "n_places) or (n_regions, n_places, n_components)"
            )
        shift = as_array("offsets", offsets, np.float64)
        if shift.shape not in ((), (len(array),)) or not np.isfinite(shift).all():
            raise DataError(
                f"offsets have shape {shift.shape}; expected a finite number, or {len(array)}"
            )
        self.weights = array
        self.offsets = np.broadcast_to(shift, len(array))
        self.regions = [np.flatnonzero(row.any(axis=1)) for row in array]

    @classmethod
    @checked
    def of_means(
        cls,
        regions: Sequence[ArrayLike],
        *,
        n_places: Annotated[int, Integer(1, MAX_PLACES)],
        scale: float,
        offset: float,
    ) -> Self:
        """Return classifiers of the mean of f on each region: Φ(scale · mean + offset).

        Parameters
        ----------
        regions : list of arrays of int
            Indices of the places of each region.
        """
        members = as_regions(regions)
        weights = np.zeros((len(members), n_places))
        for i, places in enumerate(members):
            if places.max() >= n_places:
                raise DataError(f"region {i} has place {places.max()} of {n_places}")
            weights[i, places] = scale / len(places)
        return cls(weights, offset)

    def check_field(self, field: Field) -> None:
        """Raise DataError if the field has another number of places or components."""
        expected = (field.n_places, field.n_components)
        if self.weights.shape[1:] != expected:
            raise DataError(
                f"weights have {self.weights.shape[1:]} places and components; the field has "
                f"{expected}"
            )

    @override
    def salience(self, draws: Floats, regions: Integers) -> Floats:
        linear = np.tensordot(draws, self.weights[regions], ([1, 2], [1, 2]))
        return np.asarray(ndtr(linear + self.offsets[regions]))

    @checked
    def chances(
        self, field: Field, regions: Integers, *, n_draws: int, rng: np.random.Generator
    ) -> Floats:
        """Return Φ((Lμ + b)/√(1 + L²κ)), eq. 7.8; nothing is drawn."""
        mean, variance, _ = self._moments(field, regions)
        return np.asarray(ndtr(mean / np.sqrt(1 + variance)))

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
        """Return u_g of each candidate in closed form, eq. 7.11; nothing is drawn."""
        mean, variance, along = self._moments(field, regions)
        noisy = field.variance[candidates] + field.noise
        moved = (along[:, :, candidates] ** 2).sum(axis=1) / noisy  # variance of Lμ*, (regions, c)
        deviation = np.sqrt(1 + (variance[:, None] - moved).clip(0))
        ahead = mean[:, None] - deviation * ndtri(threshold)
        sure = (ahead > 0).astype(np.float64)  # for an observation without information
        z = np.divide(ahead, np.sqrt(moved), out=np.zeros_like(ahead), where=moved > 0)
        rewards: Floats = np.where(moved > 0, ndtr(z), sure).T
        return rewards

    def _moments(self, field: Field, regions: Integers) -> tuple[Floats, Floats, Floats]:
        """Return Lμ + b and L²κ (n_regions,), and Lκ(·, x), (n_regions, n_components, n_places)."""
        weights = np.swapaxes(self.weights[regions], 1, 2)
        along = weights @ field.covariance
        mean = np.einsum("rcp,pc->r", weights, field.mean) + self.offsets[regions]
        return mean, (along * weights).sum(axis=(1, 2)).clip(0), along
