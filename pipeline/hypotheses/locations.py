"""Differences at a few places: mean embeddings, `me`; smoothed characteristic functions, `scf`.

Both are Hotelling's T² of J features per row, χ² of J (or 2 J) degrees without a difference
(Chwialkowski et al. 2015), in its form for samples of unequal sizes: all that is kept are the
features' sums over each unit.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError, ParameterError
from ..execution.costs import Cost
from ..params import as_array, check_integer
from .comparison import TwoSamples, TwoSampleStatistic
from .features import FeatureMap, feature_cost
from .kernels import Kernel
from .nulls import chi_square_null, permutation_null
from .permutation import split_sums
from .registry import Measured

Floats = NDArray[np.float64]

RIDGE = 1e-9  # of the mean variance: features that depend on each other leave T² finite
LOCATIONS = 2**63 + 2  # of the seed: no other draw has that number


@dataclass(frozen=True)
class LocationStatistic(TwoSampleStatistic):
    """Base: T² of features at J locations.

    Parameters
    ----------
    n_locations : int, default 5
        J.
    locations : J lists of d numbers, optional
        Default drawn, from the seed: see the subclasses.
    """

    nulls: ClassVar[tuple[str, ...]] = ("permutation", "chi_square")
    group_nulls: ClassVar[tuple[str, ...]] = nulls
    is_additive: ClassVar[bool] = True
    n_locations: int = 5
    locations: Sequence[Sequence[float]] | None = None

    def check(self) -> None:
        """See `Statistic.check`."""
        n = check_integer("n_locations", self.n_locations, 1, 256)
        if self.locations is not None:
            given = as_array("locations", self.locations, np.float64)
            if given.ndim != 2 or len(given) != n or not np.isfinite(given).all():
                raise ParameterError(
                    f"locations have shape {given.shape}; expected {n} lists of finite numbers"
                )

    def measure(self, samples: TwoSamples, kernel: Kernel | None) -> Measured:
        """See `TwoSampleStatistic.measure`."""
        assert kernel is not None
        locations = self.place(samples)
        features = self.features(samples, kernel, locations)
        sums, sizes = samples.feature_sums(features).astype(np.float64), samples.unit_sizes
        n_features = sums.shape[1]
        if len(sizes) < n_features + 3:
            raise DataError(
                f"the samples have {len(sizes)} units; {self.name!r} at {len(locations)} "
                f"locations needs {n_features + 3}"
            )
        is_permuted = samples.null == "permutation"
        n_permutations = samples.n_permutations if is_permuted else 0
        columns = _moments(sums, sizes)
        splits = split_sums(columns, samples.is_first_unit, n_permutations, samples.seed)
        n_first = split_sums(
            np.ones((len(sizes), 1)), samples.is_first_unit, n_permutations, samples.seed
        )
        values, per_row = _hotelling(splits, columns.sum(axis=0), n_first[:, 0], len(sizes))
        value = float(values[0])
        null = (
            permutation_null(value, values[1:], max(1.0, value))
            if is_permuted
            else chi_square_null(value, n_features)
        )
        return Measured(
            statistic=value,
            null=null,
            # of a noncentral χ² with the noncentrality that is seen
            standard_error=(2 * n_features + 4 * max(0.0, value - n_features)) ** 0.5,
            effect=(value - n_features) * float(per_row[0]),
            details={"locations": locations.tolist()},
        )

    def place(self, samples: TwoSamples) -> Floats:
        """Return the locations, shape (J, d)."""
        if self.locations is None:
            return self.draw(samples)
        given = np.array(self.locations, np.float64)
        if given.shape[1] != samples.n_dims:
            raise ParameterError(
                f"locations have {given.shape[1]} coordinates, the rows {samples.n_dims}"
            )
        return given

    @abstractmethod
    def draw(self, samples: TwoSamples) -> Floats:
        """Draw the locations, shape (J, d)."""

    @abstractmethod
    def features(self, samples: TwoSamples, kernel: Kernel, locations: Floats) -> FeatureMap:
        """Return the features of a row."""


@dataclass(frozen=True)
class MeanEmbeddings(LocationStatistic):
    """ME: mean kernels at J locations, drawn from the normal law of both samples' moments."""

    name: ClassVar[str] = "me"

    def draw(self, samples: TwoSamples) -> Floats:
        """See `LocationStatistic.draw`."""
        rows = samples.sampled_rows
        generator = _generator(samples.seed)
        noise = generator.standard_normal((self.n_locations, len(rows)))
        # Σ ε_i (x_i − x̄) / √n is normal with the rows' covariance, of any rank
        return rows.mean(axis=0) + noise @ (rows - rows.mean(axis=0)) / len(rows) ** 0.5

    def features(self, samples: TwoSamples, kernel: Kernel, locations: Floats) -> FeatureMap:
        """See `LocationStatistic.features`."""
        return KernelsAt(kernel, locations)


@dataclass(frozen=True)
class SmoothedCharacteristicFunctions(LocationStatistic):
    """SCF: characteristic functions, smoothed, at J frequencies drawn from the kernel's spectrum.

    The features are f(x) sin vᵀx and f(x) cos vᵀx with f(x) = exp(−‖x − x̄‖² / 2τ²), τ² the mean of
    ‖x − x̄‖² over both samples.
    """

    name: ClassVar[str] = "scf"

    def draw(self, samples: TwoSamples) -> Floats:
        """See `LocationStatistic.draw`: unit frequencies, which the bandwidth scales."""
        return _generator(samples.seed).standard_normal((self.n_locations, samples.n_dims))

    def features(self, samples: TwoSamples, kernel: Kernel, locations: Floats) -> FeatureMap:
        """See `LocationStatistic.features`."""
        rows = samples.sampled_rows
        centre = rows.mean(axis=0)
        width = float(((rows - centre) ** 2).sum(axis=1).mean()) ** 0.5
        return SmoothedWaves(locations.T / kernel.bandwidth, centre, width)

    kernels: ClassVar[tuple[str, ...]] = ("gaussian",)


@dataclass(frozen=True, eq=False)
class KernelsAt:
    """k(x, v_j)."""

    kernel: Kernel
    locations: Floats

    def __call__(self, rows: Floats) -> Floats:
        """See `FeatureMap`."""
        return self.kernel(rows, self.locations)

    @property
    def cost(self) -> Cost:
        """What a row takes."""
        return feature_cost(self.locations.size)


@dataclass(frozen=True, eq=False)
class SmoothedWaves:
    """f(x) sin vᵀx and f(x) cos vᵀx."""

    frequencies: Floats
    centre: Floats
    width: float

    def __call__(self, rows: Floats) -> Floats:
        """See `FeatureMap`."""
        centred = rows - self.centre
        smooth = np.exp((centred**2).sum(axis=1, keepdims=True) / (-2 * self.width**2))
        phases = centred @ self.frequencies
        return smooth * np.hstack([np.sin(phases), np.cos(phases)])

    @property
    def cost(self) -> Cost:
        """What a row takes."""
        return feature_cost(2 * self.frequencies.size)


def _moments(sums: Floats, sizes: NDArray[np.int64]) -> Floats:
    """Return per unit the columns [s, c, c s, c², s sᵀ] that T² is computed of."""
    c = sizes[:, None].astype(np.float64)
    squares = (sums[:, :, None] * sums[:, None, :]).reshape(len(sums), -1)
    return np.hstack([sums, c, c * sums, c**2, squares])


def _hotelling(
    splits: Floats, total: Floats, n_first: Floats, n_units: int
) -> tuple[Floats, Floats]:
    """Return T² of each split, and 1/m + 1/n of its rows.

    Parameters
    ----------
    splits : shape (n_splits, k)
        Sums of `_moments` over the units of the first sample.
    total : shape (k,)
        Over all units.
    n_first : shape (n_splits,)
        Units of the first sample.
    """
    means, covariances, sizes = [], [], []
    for columns, count in ((splits, n_first), (total - splits, n_units - n_first)):
        mean, covariance, rows = _mean_and_covariance(columns, count)
        means.append(mean)
        covariances.append(covariance)
        sizes.append(rows)
    difference = means[0] - means[1]
    joint = covariances[0] + covariances[1]
    J = difference.shape[1]
    joint += RIDGE * np.trace(joint, axis1=1, axis2=2)[:, None, None] / J * np.eye(J)
    values = np.einsum(
        "ij,ij->i", difference, np.linalg.solve(joint, difference[:, :, None])[..., 0]
    )
    return values, 1 / sizes[0] + 1 / sizes[1]


def _mean_and_covariance(columns: Floats, n_units: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the mean feature of each split's sample, the covariance of that mean, and its rows."""
    J = round((columns.shape[1] - 1) ** 0.5) - 1  # of J² + 2 J + 2 columns
    s, c = columns[:, :J], columns[:, J]
    cs, cc = columns[:, J + 1 : 2 * J + 1], columns[:, 2 * J + 1]
    ss = columns[:, 2 * J + 2 :].reshape(-1, J, J)
    mean = s / c[:, None]
    crossed = mean[:, :, None] * cs[:, None, :]
    spread = ss - crossed - crossed.swapaxes(1, 2)
    spread += cc[:, None, None] * mean[:, :, None] * mean[:, None, :]
    factor = n_units / (n_units - 1) / c**2
    return mean, spread * factor[:, None, None], c


def _generator(seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(key=np.array([seed, LOCATIONS], np.uint64)))
