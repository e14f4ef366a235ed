"""HSIC at 25 pairs of bandwidths: separate corrected tests (`hsic_agg`), or fused (`hsic_fuse`).

Exact kernels are used for few pairs (Schrab et al. 2023). For many pairs, random features take
linear time. HSIC is the mean of |E e^{i(ωx + υy)} − E e^{iωx} E e^{iυy}|² over frequencies ω and υ
from the spectra of the two kernels. R pairs of frequencies estimate it for each pair of bandwidths
(Schrab et al. 2022; Szabó for HSIC).
"""

from __future__ import annotations

from itertools import chain
from typing import Annotated, ClassVar

import numpy as np
from scipy.special import softmax
from typing_extensions import override

from ...core import Integer, frozen_component
from ...core.arrays import Floats
from ..kernels.pair_grams import SECONDS_PER_WIDTHS, CentredGram, products_of_widths
from ..registry import Measured
from ..two_samples.aggregated import aggregate
from ..two_samples.fused import (
    EXACT_SECONDS,
    SHARPNESS_OF_SCORES,
    fused,
    standard_scores,
    temperature_of,
)
from .pairs import INDEPENDENCE, DependenceStatistic, Pairs

BANDWIDTH_FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)  # times the median distance of each variable
EXACT_PAIRS = 2048  # ten matrices of 32 MiB, for any number of permutations


@frozen_component
class ManyWidths(DependenceStatistic):
    """Base of statistics of five widths per variable.

    Parameters
    ----------
    n_frequencies
        Number of pairs of random frequencies per pair of bandwidths, if random features are used.
    exact
        Whether exact kernels are used instead of random features. Time and memory are then
        quadratic in the number of pairs. Default: True if exact kernels take at most five seconds
        of one core: up to 790 pairs with 999 permutations, and never more than 2,048 pairs.
    """

    nulls: ClassVar[tuple[str, ...]] = ("permutation", "shift")
    n_frequencies: Annotated[int, Integer(1, 4096)] = 64
    exact: bool | None = None

    def _is_exact(self, pairs: Pairs) -> bool:
        if self.exact is not None:
            return self.exact
        seconds = SECONDS_PER_WIDTHS * len(pairs) ** 2 * pairs.n_permutations
        return len(pairs) <= EXACT_PAIRS and seconds <= EXACT_SECONDS

    def _grams(self, pairs: Pairs, i: int) -> Floats:
        """Return the U-centred matrix of each width, shape (5, n, n)."""
        kernel, rows = pairs.kernels[i], pairs.rows[i]
        return np.array(
            [CentredGram.of(kernel, rows / width, True).whole() for width in BANDWIDTH_FACTORS]
        )

    def _waves(self, pairs: Pairs, i: int) -> Floats:
        """Return e^{iωx} of centred rows, shape (R, n, 5): complex."""
        kernel, rows = pairs.kernels[i], pairs.rows[i] - pairs.rows[i].mean(axis=0)
        seed = (pairs.seed + i) % 2**64
        phases = rows @ kernel.frequencies(rows.shape[1], self.n_frequencies, seed)
        waves: Floats = np.exp(1j * phases.T[:, :, None] / np.array(BANDWIDTH_FACTORS))
        return waves

    def _draw(self, pairs: Pairs) -> tuple[Floats, Floats]:
        """Return HSIC at each pair of bandwidths, (25,), and in each permutation, (m, 25)."""
        if self._is_exact(pairs):
            n = len(pairs)
            observed = np.arange(n)[None]
            A, B = (self._grams(pairs, i) for i in range(2))
            every = products_of_widths(A, B, chain([observed], pairs.orders())) / (n * (n - 3))
            return every[0], every[1:]
        X, Y = (self._waves(pairs, i) for i in range(2))
        drawn = [dependence(X, Y[:, order]) for block in pairs.orders() for order in block]
        return dependence(X, Y), np.array(drawn)


@INDEPENDENCE.register
@frozen_component
class HSICAggregate(ManyWidths):
    """HSICAgg: tests at five bandwidths per variable, corrected for multiplicity.

    The result names the pairs of bandwidths at which HSIC rejects. `HSICFuse` gives one statistic
    instead.

    See Also
    --------
    independence_test : Test for independence.
    HSICFuse : Default: several widths, fused.
    bagbasis.plotting.plot_scales : Plot the contribution of each bandwidth.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=100)
    >>> y = x**2 + 0.1 * rng.normal(size=100)
    >>> from bagbasis.hypotheses import HSICAggregate, independence_test
    >>> result = independence_test(x, y, statistic=HSICAggregate(), n_permutations=199)
    >>> result.p_value < 0.05
    True
    """

    name: ClassVar[str] = "hsic_agg"

    @override
    def measure(self, pairs: Pairs) -> Measured:
        values, drawn = self._draw(pairs)
        aggregated = aggregate(values, drawn, pairs.null, size=1.0)
        widths = pairs_of_widths(pairs)
        scales = {**widths, "hsic": values.tolist(), **aggregated.columns()}
        details = {**aggregated.counted(width_names(widths)), "pairs_of_scales": scales}
        return Measured(aggregated.statistic, aggregated.null, details=details)


@INDEPENDENCE.register
@frozen_component
class HSICFuse(ManyWidths):
    """HSIC-FUSE: a soft maximum of standardised HSIC over 25 pairs of bandwidths.

    The statistic is T = log(mean exp(s z_k)) / s. Each z_k is HSIC at one pair of bandwidths, less
    its mean and divided by its standard deviation over permutations. This is similar to MMD-FUSE,
    which divides by the norms of the kernels, but also valid for random features and for groups.
    The data count as one of the permutations, so that the test has an exact level.

    See Also
    --------
    independence_test : Test for independence.
    HSICAggregate : Several widths, corrected for multiplicity.
    HSICu : Unbiased HSIC.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=100)
    >>> y = x**2 + 0.1 * rng.normal(size=100)
    >>> from bagbasis.hypotheses import HSICFuse, independence_test
    >>> result = independence_test(x, y, statistic=HSICFuse(), n_permutations=199)
    >>> result.p_value < 0.05
    True
    """

    name: ClassVar[str] = "hsic_fuse"

    @override
    def measure(self, pairs: Pairs) -> Measured:
        values, drawn = self._draw(pairs)
        scores = standard_scores(np.vstack([values, drawn]))
        joined = fused(scores, np.ones(len(values)), SHARPNESS_OF_SCORES)
        null = pairs.order_null(float(joined[0]), joined[1:], 1.0)
        weights = softmax(SHARPNESS_OF_SCORES * scores[0])
        widths = pairs_of_widths(pairs)
        top = int(np.argmax(weights))
        details = {
            "largest_weight": f"{width_names(widths)[top]}: {weights[top]:.0%}",
            "pairs_of_scales": {**widths, "hsic": values.tolist(), "weight": weights.tolist()},
        }
        # HSIC of centred kernels has the standard deviation √2 ‖K̃‖ ‖L̃‖ / n
        alignment = 2**0.5 * scores[0] / temperature_of(len(np.unique(pairs.units)))
        return Measured(float(joined[0]), null, effect=float(weights @ alignment), details=details)


def dependence(X: Floats, Y: Floats) -> Floats:
    """Return HSIC at each pair of bandwidths, shape (25,).

    Parameters
    ----------
    X, Y : complex, shape (R, n, 5)
    """
    n = X.shape[1]
    joint = X.swapaxes(1, 2) @ Y / n
    joint -= X.mean(axis=1)[:, :, None] * Y.mean(axis=1)[:, None, :]
    squares: Floats = (np.abs(joint) ** 2).mean(axis=0).ravel()
    return squares


def pairs_of_widths(pairs: Pairs) -> dict[str, list[float]]:
    """Return the bandwidths of both variables, pair by pair, for a report."""
    x, y = ([float(kernel.bandwidth * w) for w in BANDWIDTH_FACTORS] for kernel in pairs.kernels)
    return {
        "bandwidth_of_x": np.repeat(x, len(BANDWIDTH_FACTORS)).tolist(),
        "bandwidth_of_y": y * len(BANDWIDTH_FACTORS),
    }


def width_names(widths: dict[str, list[float]]) -> list[str]:
    """Return the names of pairs of bandwidths in reports."""
    both = zip(widths["bandwidth_of_x"], widths["bandwidth_of_y"], strict=True)
    return [f"bandwidths {a:.4g} and {b:.4g}" for a, b in both]
