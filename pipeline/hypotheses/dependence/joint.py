"""HSIC of three or more variables, for a test of joint independence (`dhsic`)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import ClassVar

import numpy as np
from typing_extensions import override

from ...core import frozen_component
from ...core.arrays import Floats, Integers
from ...execution.passes import check_memory
from ..registry import Measured
from .pairs import INDEPENDENCE, DependenceStatistic, Pairs


@INDEPENDENCE.register
@frozen_component
class JointHSIC(DependenceStatistic):
    """dHSIC: joint independence of several variables.

    The statistic is the squared distance between the joint mean map and the mean map of independent
    variables:

    (1/n²) Σ_ij Π_k K^k_ij + Π_k (1/n²) Σ_ij K^k_ij − (2/n) Σ_i Π_k (1/n) Σ_j K^k_ij (Pfister,
    Bühlmann, Schölkopf and Peters 2018, Definition 2.6, with all pairs). The distance of the
    distributions is 0 only if all variables are jointly independent. Each variable except the first
    is permuted separately. Time and memory are quadratic in the number of pairs.

    See Also
    --------
    independence_test : Test for independence.
    HSICb : Biased HSIC.
    Lancaster : Interaction of three variables.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> from bagbasis.hypotheses import JointHSIC, independence_test
    >>> x, y = rng.normal(size=(2, 120))
    >>> z = {'product': x * y}
    >>> result = independence_test(x, y, z, statistic=JointHSIC(), n_permutations=199)
    >>> result.p_value < 0.05
    True
    """

    name: ClassVar[str] = "dhsic"
    nulls: ClassVar[tuple[str, ...]] = ("permutation", "shift")
    n_variables: ClassVar[int] = 3
    takes_more: ClassVar[bool] = True

    @override
    def measure(self, pairs: Pairs) -> Measured:
        n, k = len(pairs), len(pairs.rows)
        check_memory(f"{k} matrices of {n:,} × {n:,} pairs", 8 * (k + 2) * n**2, "take fewer rows")
        grams = [kernel(rows, rows) for kernel, rows in zip(pairs.kernels, pairs.rows, strict=True)]
        means = [gram.mean(axis=1) for gram in grams]
        apart = float(np.prod([mean.mean() for mean in means]))

        def value(orders: Sequence[Integers]) -> float:
            joint, margin = grams[0].copy(), means[0].copy()
            for gram, mean, order in zip(grams[1:], means[1:], orders, strict=True):
                joint *= gram[np.ix_(order, order)]
                margin *= mean[order]
            return float(joint.mean()) + apart - 2 * float(margin.mean())

        moved = [chain.from_iterable(pairs.orders(stream)) for stream in range(1, k)]
        drawn: Floats = np.array([value(orders) for orders in zip(*moved, strict=True)])
        observed = value([np.arange(n)] * (k - 1))
        return Measured(observed, pairs.order_null(observed, drawn, float(grams[0].mean())))
