"""The sliced Wasserstein distance between two samples (`sliced`), without a kernel."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from ...core import Integer, frozen_component
from ...core.arrays import Floats
from ...execution.pool import run_parts
from ..kernels.kernels import Kernel
from ..kernels.sliced_kernels import sliced_squares
from ..nulls.distributions import permutation_null
from ..nulls.draws import generator_of
from ..nulls.permutation import draw_splits
from ..registry import Measured
from .comparison import TWO_SAMPLE, TwoSamples, TwoSampleStatistic

SPLITS_PER_PART = 16


@TWO_SAMPLE.register
@frozen_component
class Sliced(TwoSampleStatistic):
    """Sliced Wasserstein distance: mean squared distance along random directions.

    The rows are projected onto each direction, and the squared W₂ distances of the projections are
    averaged. The statistic has no kernel and no bandwidth. Each permutation takes O(n).

    Parameters
    ----------
    n_directions
        Number of directions. Rows with one coordinate have one direction.

    See Also
    --------
    two_sample_test : Compare two samples.
    EnergyDistance : Energy distance.
    bagbasis.SlicedWassersteinEmbedding : Quantiles along directions.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> a, b = rng.normal(0, 1, (80, 2)), rng.normal(0.8, 1, (80, 2))
    >>> from bagbasis.hypotheses import Sliced, two_sample_test
    >>> result = two_sample_test(a, b, statistic=Sliced(n_directions=16), n_permutations=199)
    >>> result.p_value < 0.05
    True
    """

    name: ClassVar[str] = "sliced"
    nulls: ClassVar[tuple[str, ...]] = ("permutation",)
    kernels: ClassVar[tuple[str, ...]] = ()
    n_directions: Annotated[int, Integer(1, 10_000)] = 64

    @override
    def measure(self, samples: TwoSamples, kernel: Kernel | None) -> Measured:
        rows = samples.rows - samples.sampled_rows.mean(axis=0)
        splits = draw_splits(samples.is_first_unit, samples.n_permutations, samples.seed)
        values = sliced_distances(rows, splits[:, samples.units], self.n_directions, samples.seed)
        parts = rows[: len(samples.first)], rows[len(samples.first) :]
        within = float(np.mean([part.var(axis=0).mean() for part in parts]))
        scale = max(within, float(values[0]), np.finfo(float).tiny)
        return Measured(
            statistic=float(values[0]),
            null=permutation_null(float(values[0]), values[1:], scale),
            effect=float(values[0]) / within if within > 0 else float("nan"),
        )


def sliced_distances(
    rows: Floats, splits: NDArray[np.bool_], n_directions: int, seed: int
) -> Floats:
    """Return the squared distance of each split's parts, shape (n_splits,).

    Parameters
    ----------
    rows : shape (n, d)
    splits : bool, shape (n_splits, n)
    """
    n_dims = rows.shape[1]
    directions = np.ones((1, 1))
    if n_dims > 1:
        directions = generator_of(seed, "features").standard_normal((n_dims, n_directions))
        directions /= np.linalg.norm(directions, axis=0)
    projected = np.ascontiguousarray((rows @ directions).T)
    orders = np.argsort(projected, axis=1, kind="stable")
    values = np.take_along_axis(projected, orders, axis=1)
    out = np.empty(len(splits))

    def measure_part(part: int) -> None:
        cut = slice(part * SPLITS_PER_PART, (part + 1) * SPLITS_PER_PART)
        sliced_squares(values, orders, splits[cut], out[cut])

    run_parts(measure_part, -(-len(splits) // SPLITS_PER_PART))
    return out
