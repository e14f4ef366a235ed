"""MMD² from disjoint pairs of rows (`mmd_linear`) or from blocks of rows (`mmd_block`).

Both statistics are means of independent unbiased estimates, and therefore asymptotically normal,
with or without a difference. Rows are shuffled first, because neighbours in sorted data are alike.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, ClassVar

import numpy as np
from typing_extensions import override

from ...core import Integer, frozen_component
from ...core.arrays import Floats
from ..kernels.kernels import Kernel
from ..nulls.distributions import normal_null
from ..nulls.permutation import draw_orders
from ..registry import Measured
from .comparison import TWO_SAMPLE, TwoSamples, TwoSampleStatistic, require_rows


@frozen_component
class MeanOfEstimates(TwoSampleStatistic):
    """Base: a mean of independent estimates from equally many rows of both samples."""

    nulls: ClassVar[tuple[str, ...]] = ("normal",)
    group_nulls: ClassVar[tuple[str, ...]] = ()

    @override
    def measure(self, samples: TwoSamples, kernel: Kernel | None) -> Measured:
        assert kernel is not None
        require_rows(samples, 4, f"statistic {self.name!r}")
        n = min(len(samples.first), len(samples.second))
        X, Y = (
            sample.rows[next(draw_orders(len(sample), 1, samples.seed))[:n]]
            for sample in (samples.first, samples.second)
        )
        values, spread = self.estimates(X, Y, kernel)
        value = float(values.mean())
        error = float(values.std(ddof=1)) / len(values) ** 0.5
        return Measured(
            statistic=value,
            null=normal_null(value, max(error, np.finfo(float).tiny), len(values) - 1),
            standard_error=error,
            effect=value / spread if spread > 0 else float("nan"),
            details={"n_estimates": len(values), "rows_used": n},
        )

    @abstractmethod
    def estimates(self, X: Floats, Y: Floats, kernel: Kernel) -> tuple[Floats, float]:
        """Return the estimates, shape (k,), and E‖φ(x) − μ‖² within the samples."""


@TWO_SAMPLE.register
@frozen_component
class LinearMMD(MeanOfEstimates):
    """MMD over disjoint pairs, in linear time.

    MMD_l² is the mean of k(x, x') + k(y, y') − k(x, y') − k(x', y) over the pairs, in O(n d).

    See Also
    --------
    two_sample_test : Compare two samples.
    BlockMMD : MMD averaged over blocks.
    FourierMMD : MMD by random Fourier features.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> a, b = rng.normal(0, 1, (2000, 2)), rng.normal(0.5, 1, (2000, 2))
    >>> from bagbasis.hypotheses import LinearMMD, two_sample_test
    >>> result = two_sample_test(a, b, statistic=LinearMMD())
    >>> result.p_value < 0.05
    True
    """

    name: ClassVar[str] = "mmd_linear"

    @override
    def estimates(self, X: Floats, Y: Floats, kernel: Kernel) -> tuple[Floats, float]:
        n = len(X) // 2 * 2
        x, other_x, y, other_y = X[0:n:2], X[1:n:2], Y[0:n:2], Y[1:n:2]
        own = kernel.paired(x, other_x) + kernel.paired(y, other_y)
        crossed = kernel.paired(x, other_y) + kernel.paired(other_x, y)
        return own - crossed, float(1 - own.mean() / 2)


@TWO_SAMPLE.register
@frozen_component
class BlockMMD(MeanOfEstimates):
    """The B-test: unbiased MMD averaged over blocks.

    The statistic is the mean of MMD_u² over blocks, in O(n B d).

    Parameters
    ----------
    block_size
        Number B of rows of each sample in a block. Default: √n, with at least two blocks.

    See Also
    --------
    two_sample_test : Compare two samples.
    LinearMMD : MMD in linear time.
    UnbiasedMMD : Unbiased MMD of all pairs.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> a, b = rng.normal(0, 1, (2000, 2)), rng.normal(0.5, 1, (2000, 2))
    >>> from bagbasis.hypotheses import BlockMMD, two_sample_test
    >>> result = two_sample_test(a, b, statistic=BlockMMD(block_size=50))
    >>> result.p_value < 0.05
    True
    """

    name: ClassVar[str] = "mmd_block"
    block_size: Annotated[int, Integer(2)] | None = None

    @override
    def estimates(self, X: Floats, Y: Floats, kernel: Kernel) -> tuple[Floats, float]:
        size = min(self.block_size or int(len(X) ** 0.5), len(X) // 2)
        values = np.empty(len(X) // size)
        own_sum = 0.0
        for b in range(len(values)):
            x, y = X[b * size : (b + 1) * size], Y[b * size : (b + 1) * size]
            own = (kernel(x, x).sum() + kernel(y, y).sum() - 2 * size) / (size * (size - 1))
            values[b] = own - 2 * kernel(x, y).mean()
            own_sum += own
        return values, float(1 - own_sum / len(values) / 2)
