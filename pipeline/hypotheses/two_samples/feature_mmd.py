"""FastMMD: MMD² from random features, `fourier` and `fastfood` (FastMMD 2015, Algorithms 1 and 2).

Only the sums of the features over each unit are kept, and these can be added and subtracted. One
pass over the rows suffices, whatever their number, and permutations need no further pass.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
from typing_extensions import override

from ...core import Integer, frozen_component
from ...core.arrays import Floats
from ..kernels.features import FourierFeatures
from ..kernels.kernels import Kernel
from ..nulls.distributions import Null, gamma_null, mixture_null, pearson_null, permutation_null
from ..nulls.permutation import mmd_squared_of_splits, split_sums
from ..nulls.wild_bootstrap import WILD, wild_null
from ..registry import Measured
from .comparison import TWO_SAMPLE, TwoSamples, TwoSampleStatistic

_MIN_WITHIN = 1e-6  # features of norm 1 in single precision: less is rounding
_MAX_FREQUENCIES = 2**16  # a permutation then takes half a megabyte


@TWO_SAMPLE.register
@frozen_component
class FourierMMD(TwoSampleStatistic):
    """MMD by random Fourier features, in linear time.

    MMD_u² is approximated with L random frequencies. The error falls as L^(−½), and the time is
    linear in the number of rows. The null distribution is valid for any L.

    Parameters
    ----------
    n_frequencies
        Number L of random frequencies, each with a sine and a cosine.

    See Also
    --------
    two_sample_test : Compare two samples.
    FastfoodMMD : MMD by Fastfood features.
    UnbiasedMMD : Unbiased MMD of all pairs.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> a, b = rng.normal(0, 1, (80, 2)), rng.normal(0.8, 1, (80, 2))
    >>> from bagbasis.hypotheses import FourierMMD, two_sample_test
    >>> statistic = FourierMMD(n_frequencies=64)
    >>> result = two_sample_test(a, b, statistic=statistic, n_permutations=199)
    >>> result.p_value < 0.05
    True
    """

    name: ClassVar[str] = "fourier"
    nulls: ClassVar[tuple[str, ...]] = ("permutation", "spectral", "gamma", "pearson", WILD)
    group_nulls: ClassVar[tuple[str, ...]] = nulls
    is_additive: ClassVar[bool] = True
    fast: ClassVar[bool] = False
    n_frequencies: Annotated[int, Integer(1, _MAX_FREQUENCIES)] = 256

    @override
    def measure(self, samples: TwoSamples, kernel: Kernel | None) -> Measured:
        assert kernel is not None
        n = self.n_frequencies
        features = FourierFeatures(kernel, samples.n_dims, n, samples.seed, self.fast)
        sums, sizes = samples.feature_sums(features), samples.unit_sizes
        is_permuted = samples.null == "permutation"
        splits = split_sums(
            np.column_stack([sums, sizes]),
            samples.is_first_unit,
            samples.n_permutations if is_permuted else 0,
            samples.seed,
        )
        n_first = splits[:, -1]
        n_second = sizes.sum() - n_first
        values = mmd_squared_of_splits(splits[:, :-1], sums.sum(axis=0), n_first, n_second)
        first = splits[0, :-1] / n_first[0]
        second = (sums.sum(axis=0) - splits[0, :-1]) / n_second[0]
        difference = first - second
        biased = float(difference @ difference)
        shift = values[0] - biased
        if is_permuted:
            null = permutation_null(values[0], values[1:])
        elif samples.null == WILD:
            drawn = ((samples.wild_weights() @ sums) ** 2).sum(axis=1)
            null = wild_null(values[0], drawn + shift, 1.0)
        else:
            null = _null_distribution(values[0], shift, sums, samples)
        # value per frequency; the mean over the frequencies is MMD_b²
        squares = n * (difference**2).reshape(2, n).sum(axis=0)
        within = _spread_within(((first, n_first[0]), (second, n_second[0])))
        return Measured(
            statistic=float(values[0]),
            null=null,
            standard_error=samples.standard_error(sums @ difference, float(null.values.var())),
            effect=float(values[0]) / within if within > _MIN_WITHIN else float("nan"),
            details={"biased": biased, "error_of_frequencies": float(squares.std() / n**0.5)},
        )


@TWO_SAMPLE.register
@frozen_component
class FastfoodMMD(FourierMMD):
    """MMD by Fastfood features, which are faster in many dimensions.

    The statistic is that of `FourierMMD` with frequencies from Fastfood, in O(n L log d) instead of
    O(n L d) time. The frequencies are dependent within blocks of 2^⌈log2 d⌉.

    See Also
    --------
    two_sample_test : Compare two samples.
    FourierMMD : MMD by random Fourier features.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> a, b = rng.normal(0, 1, (80, 2)), rng.normal(0.8, 1, (80, 2))
    >>> from bagbasis.hypotheses import FastfoodMMD, two_sample_test
    >>> statistic = FastfoodMMD(n_frequencies=64)
    >>> result = two_sample_test(a, b, statistic=statistic, n_permutations=199)
    >>> result.p_value < 0.05
    True
    """

    name: ClassVar[str] = "fastfood"
    kernels: ClassVar[tuple[str, ...]] = ("gaussian", "matern")
    fast: ClassVar[bool] = True


def _null_distribution(value: float, shift: float, sums: Floats, samples: TwoSamples) -> Null:
    """Return the null Σ λ χ²_1 + shift of the covariance of the difference of the means."""
    residuals = np.concatenate(samples.residuals(sums))
    n_units, n_features = residuals.shape
    product = residuals @ residuals.T if n_units < n_features else residuals.T @ residuals
    if samples.null == "spectral":
        weights = np.linalg.eigvalsh(product).astype(np.float64)
        return mixture_null(value, weights, samples.n_permutations, samples.seed, shift)
    mean, variance = float(np.trace(product)) + shift, 2 * float(np.vdot(product, product))
    if samples.null == "gamma":
        return gamma_null(value, mean, variance, shift)
    cubes = float(np.vdot(product @ product, product))
    return pearson_null(value, mean, variance, 8 * cubes / variance**1.5)


def _spread_within(means: tuple[tuple[Floats, float], ...]) -> float:
    """Return E‖φ(x) − μ‖² within the samples, pooled, from their mean features and sizes."""
    own = sum((n**2 * (mean @ mean) - n) / (n - 1) for mean, n in means)
    return float(1 - own / sum(n for _, n in means))
