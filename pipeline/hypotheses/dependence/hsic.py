"""Dependence statistics of all pairs of rows: HSIC, distance covariance, Lancaster interaction."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, ClassVar

import numpy as np
from scipy.linalg import eigvalsh
from typing_extensions import override

from ...core import Integer, frozen_component
from ...core.arrays import Floats
from ...core.errors import DataError
from ..kernels.kernels import AnyKernel, NegativeDistance
from ..kernels.pair_grams import CentredGram, GramSums, products_of_orders
from ..nulls.distributions import Null, gamma_null, normal_null, pearson_null
from ..registry import Measured
from .pairs import INDEPENDENCE, DependenceStatistic, Pairs, product_null

# Limits of "spectral" with distances, the sum of which a few pairs may dominate. 100 Cauchy values
# count like 2 to 14 values of equal size, and p ≤ .05 in 12 % of tests; 50 normal values count like
# 24 or more. With 30 instead of 60, 200 values of Student's t with 2 or 3 degrees of freedom give
# 7 or 8 %; with 60 they give 5 %.
_MIN_PAIRS, _MIN_SHARE = 60, 1 / 3
MIN_BLOCK = 4  # rows of an unbiased HSIC


@INDEPENDENCE.register
@frozen_component
class HSICb(DependenceStatistic):
    """Biased Hilbert-Schmidt independence criterion.

    The statistic is ‖C_xy‖² = (1/n²) ⟨K̃, L̃⟩ ≥ 0 for two kernels. It is biased upwards.

    See Also
    --------
    independence_test : Test for independence.
    HSICu : Unbiased HSIC.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=100)
    >>> y = x**2 + 0.1 * rng.normal(size=100)
    >>> from bagbasis.hypotheses import HSICb, independence_test
    >>> result = independence_test(x, y, statistic=HSICb(), n_permutations=199)
    >>> result.p_value < 0.05
    True
    """

    name: ClassVar[str] = "hsic_b"
    nulls: ClassVar[tuple[str, ...]] = ("permutation", "gamma", "pearson", "spectral", "shift")
    unbiased: ClassVar[bool] = False

    def _kernels_of(self, pairs: Pairs) -> tuple[AnyKernel, ...]:
        """Return the kernel of each variable."""
        return pairs.kernels

    @override
    def measure(self, pairs: Pairs) -> Measured:
        # "gamma" and "pearson" need memory for tiles alone
        n = len(pairs)
        kernels = self._kernels_of(pairs)
        A, B = (
            CentredGram.of(kernel, rows, self.unbiased)
            for kernel, rows in zip(kernels, pairs.rows, strict=True)
        )
        sums = GramSums.of(A, B)
        scale = 1 / (n * (n - 3)) if self.unbiased else 1 / n**2
        measured = Measured(
            scale * sums.product,
            self._null(pairs, A, B, sums, scale),
            sums.standard_error,
            sums.alignment,
        )
        return measured.times_power(sum(kernel.exponent for kernel in kernels), self.name)

    def _null(
        self, pairs: Pairs, A: CentredGram, B: CentredGram, sums: GramSums, scale: float
    ) -> Null:
        observed, n = scale * sums.product, len(pairs)
        if pairs.null in ("gamma", "pearson"):
            mean, variance = sums.moments()
            if pairs.null == "pearson":
                skewness = 8**0.5 * A.skew * B.skew
                return pearson_null(observed, scale * mean, scale**2 * variance, skewness)
            # the unbiased HSIC is shifted by about the average of the bias
            shift = -A.centred_trace * B.centred_trace / n**3 if self.unbiased else 0.0
            return gamma_null(observed, scale * mean, scale**2 * variance, shift)
        if pairs.null == "spectral":
            whole = (
                CentredGram.of(gram.kernel, gram.rows).whole() if self.unbiased else gram.whole()
                for gram in (A, B)
            )
            grams = [self._checked(gram, pairs) for gram in whole]
            x, y = (eigvalsh(gram, overwrite_a=True) / n for gram in grams)
            return product_null(observed, (x, y), n, pairs, self.unbiased)
        values = products_of_orders(A.whole(), B.whole(), pairs.orders())
        norm = (sums.squares[0] * sums.squares[1]) ** 0.5
        return pairs.order_null(observed, scale * values, scale * norm)

    def _checked(self, gram: Floats, pairs: Pairs) -> Floats:
        """Return a centred matrix; raise DataError if the asymptotic null is not valid for it."""
        return gram


@INDEPENDENCE.register
@frozen_component
class HSICu(HSICb):
    """Unbiased Hilbert-Schmidt independence criterion.

    The statistic is ⟨K, L⟩ of U-centred kernel matrices. Its expected value is 0 without
    dependence.

    See Also
    --------
    independence_test : Test for independence.
    HSICb : Biased HSIC.
    HSICFuse : Default: several widths, fused.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=100)
    >>> y = x**2 + 0.1 * rng.normal(size=100)
    >>> from bagbasis.hypotheses import HSICu, independence_test
    >>> result = independence_test(x, y, statistic=HSICu(), n_permutations=199)
    >>> result.p_value < 0.05
    True
    """

    name: ClassVar[str] = "hsic_u"
    unbiased: ClassVar[bool] = True


@INDEPENDENCE.register
@frozen_component
class DistanceCovariance(HSICb):
    """Squared distance covariance; it has no bandwidth.

    The statistic equals 4 HSIC_b with the kernels −‖Δ‖ / 2.

    See Also
    --------
    independence_test : Test for independence.
    HSICb : Biased HSIC.
    EnergyDistance : Energy distance.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=100)
    >>> y = x**2 + 0.1 * rng.normal(size=100)
    >>> from bagbasis.hypotheses import DistanceCovariance, independence_test
    >>> result = independence_test(x, y, statistic=DistanceCovariance(), n_permutations=199)
    >>> result.p_value < 0.05
    True
    """

    name: ClassVar[str] = "dcov"
    kernels: ClassVar[tuple[str, ...]] = ()
    # not "gamma": with two moments alone p ≤ .01 in 2 % of tests
    nulls: ClassVar[tuple[str, ...]] = ("permutation", "pearson", "spectral", "shift")

    def _kernels_of(self, pairs: Pairs) -> tuple[AnyKernel, ...]:
        """Return the kernel of each variable; the signs cancel."""
        return tuple(NegativeDistance.of(rows) for rows in pairs.rows)

    @override
    def _checked(self, gram: Floats, pairs: Pairs) -> Floats:
        # with heavy tails, a few pairs have nearly all of the distances
        own = np.diagonal(gram)
        many = own.sum() ** 2 / max(float((own**2).sum()), np.finfo(float).tiny)
        if many < min(_MIN_PAIRS, _MIN_SHARE * len(gram)):
            raise DataError(
                f"a few of the {len(pairs)} pairs have nearly all of the distances, as if there "
                f"were {many:.0f}: the distribution of null 'spectral' is not theirs; take "
                "null='permutation', or ranks, or statistic='hsic_b'"
            )
        return gram


@INDEPENDENCE.register
@frozen_component
class HSICBlock(DependenceStatistic):
    """HSIC averaged over blocks of pairs.

    The statistic is the mean of HSIC_u over blocks. Its null distribution is asymptotically normal.
    The time is proportional to n · block.

    Parameters
    ----------
    block
        Number of pairs in a block. Default: √n.

    See Also
    --------
    independence_test : Test for independence.
    HSICu : Unbiased HSIC.
    HSICFourier : HSIC by random Fourier features.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=100)
    >>> y = x**2 + 0.1 * rng.normal(size=100)
    >>> from bagbasis.hypotheses import HSICBlock, independence_test
    >>> result = independence_test(x, y, statistic=HSICBlock(block=10), n_permutations=199)
    >>> result.p_value < 0.05
    True
    """

    name: ClassVar[str] = "hsic_block"
    nulls: ClassVar[tuple[str, ...]] = ("normal",)
    group_nulls: ClassVar[tuple[str, ...]] = ()
    block: Annotated[int, Integer(MIN_BLOCK)] | None = None

    @override
    def measure(self, pairs: Pairs) -> Measured:
        n = len(pairs)
        block = max(MIN_BLOCK, int(n**0.5)) if self.block is None else self.block
        if n < 2 * block:
            raise DataError(f"{n} pairs are less than two blocks of {block}; take smaller blocks")
        kernels, products = pairs.kernels, []
        for start in range(0, n - block + 1, block):
            rows = slice(start, start + block)
            A, B = (
                CentredGram.of(kernel, z[rows], unbiased=True)
                for kernel, z in zip(kernels, pairs.rows, strict=True)
            )
            products.append(GramSums.of(A, B).product / (block * (block - 3)))
        observed, error = (
            float(np.mean(products)),
            float(np.std(products, ddof=1) / len(products) ** 0.5),
        )
        null = normal_null(observed, error, len(products) - 1)
        return Measured(observed, null, error, details={"block": block})


@INDEPENDENCE.register
@frozen_component
class Lancaster(DependenceStatistic):
    """Lancaster interaction of three variables.

    The statistic is (K̃ ∘ L̃ ∘ M̃)₊₊ / n². It is 0 if one variable is independent of the other two.
    Each variable in turn is permuted, and the p-value is the largest of the three p-values. A
    rejection therefore means that no variable is independent of the other two.

    See Also
    --------
    independence_test : Test for independence.
    JointHSIC : Joint independence of several variables.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> from bagbasis.hypotheses import Lancaster, independence_test
    >>> x, y = rng.normal(size=(2, 120))
    >>> z = np.sign(x * y)  # depends on both, and on neither alone
    >>> result = independence_test(x, y, z, statistic=Lancaster(), n_permutations=199)
    >>> result.p_value < 0.05
    True
    """

    name: ClassVar[str] = "lancaster"
    nulls: ClassVar[tuple[str, ...]] = ("permutation", "shift")
    n_variables: ClassVar[int] = 3

    @override
    def measure(self, pairs: Pairs) -> Measured:
        # memory for five matrices of all pairs
        n = len(pairs)
        grams = [
            CentredGram.of(kernel, rows).whole()
            for kernel, rows in zip(pairs.kernels, pairs.rows, strict=True)
        ]
        nulls: dict[str, Null] = {}
        for i, moved in enumerate("xyz"):
            others = grams[i - 1] * grams[i - 2]
            observed = float(np.vdot(others, grams[i])) / n**2
            values = products_of_orders(others, grams[i], pairs.orders(i)) / n**2
            scale = float(np.linalg.norm(others) * np.linalg.norm(grams[i])) / n**2
            nulls[moved] = pairs.order_null(observed, values, scale)
        worst = max(nulls.values(), key=lambda null: null.p_value)
        details = {f"p_of_{moved}": null.p_value for moved, null in nulls.items()}
        return Measured(observed, replace(worst, name=pairs.null), details=details)
