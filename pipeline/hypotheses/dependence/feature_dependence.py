"""Dependence statistics from features: HSIC by random or Nyström features, RDC, and KCCA."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from scipy.linalg import eigh, svd
from scipy.stats import rankdata
from typing_extensions import override

from ...core import Integer, Real, frozen_component
from ...core.arrays import Floats
from ...core.errors import ParameterError
from ...core.sums import Sums
from ...execution.costs import SECONDS_PER_PRODUCT, Cost
from ..declared import MAX_FEATURES
from ..kernels.features import FourierFeatures
from ..kernels.kernels import Kernel
from ..kernels.pair_grams import CentredGram
from ..nulls.draws import generator_of
from ..registry import Measured
from .pairs import INDEPENDENCE, DependenceStatistic, PairMap, Pairs, product_null
from .row_pairs import CrossMoments, RowPair, nystroem_rows

Ridge = Annotated[float, Real(gt=0)]
DEFAULT_RIDGE = 0.01
_FAR = 1e3  # bandwidths from 0: phases in float32 lose as many digits more
_MIN_SHARE = 1e-6  # fraction of a direction of KCCA: smaller ones change no correlation
# Relative to RDC's largest singular value: smaller ones are powers that n rows do not resolve.
_MIN_SINGULAR_VALUE = 1e-4


@frozen_component
class FeatureHSIC(DependenceStatistic):
    """Base: HSIC_b of the kernels that the features approximate, ‖C_xy‖²_F."""

    nulls: ClassVar[tuple[str, ...]] = ("spectral", "permutation", "shift")

    @abstractmethod
    def _features(self, rows: Floats, kernel: Kernel, seed: int) -> Floats:
        """Return the features of rows."""

    @override
    def measure(self, pairs: Pairs) -> Measured:
        X, Y = (
            self._features(rows, kernel, (pairs.seed + i) % 2**64)
            for i, (rows, kernel) in enumerate(zip(pairs.rows, pairs.kernels, strict=True))
        )
        pair = RowPair.centred(X, Y)
        observed, spectra = pair.value(), pair.spectra()
        scale = float(np.linalg.norm(spectra[0]) * np.linalg.norm(spectra[1]))
        if pairs.null == "spectral":
            null = product_null(observed, spectra, len(pairs), pairs)
        else:
            null = pairs.order_null(observed, pair.values(pairs.orders()), scale)
        return Measured(observed, null, pair.standard_error(), observed / scale)


@dataclass(frozen=True)
class FourierPairs:
    """The `CrossMoments` of random features of x and of y; a `PairMap`."""

    x: FourierFeatures
    y: FourierFeatures

    def __call__(self, X: Floats, Y: Floats) -> CrossMoments:
        """Return the sums over rows (n, d_x) and (n, d_y)."""
        return CrossMoments.of(self.x(X).astype(np.float64), self.y(Y).astype(np.float64))

    @property
    def cost(self) -> Cost:
        """Cost per pair of rows."""
        n_features = 2 * self.x.n_frequencies
        doubles = Cost(
            seconds_per_bag=6 * n_features**2 * SECONDS_PER_PRODUCT,
            bytes_per_bag=16 * n_features,
            bytes_per_task=3 * 3 * 8 * n_features**2,  # three sums: total, batch, and merged
        )
        return self.x.cost + self.y.cost + doubles


@INDEPENDENCE.register
@frozen_component
class HSICFourier(FeatureHSIC):
    """HSIC by random Fourier features of both kernels.

    HSIC_b is approximated in linear time from sums over the pairs, which can be merged. Use it for
    many pairs; `HSICb` is exact.

    Parameters
    ----------
    n_features
        Number of random features of each variable.

    See Also
    --------
    independence_test : Test for independence.
    HSICNystroem : HSIC by Nyström features.
    HSICb : Biased HSIC.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=100)
    >>> y = x**2 + 0.1 * rng.normal(size=100)
    >>> from bagbasis.hypotheses import HSICFourier, independence_test
    >>> statistic = HSICFourier(n_features=50)
    >>> result = independence_test(x, y, statistic=statistic, n_permutations=199)
    >>> result.p_value < 0.05
    True
    """

    name: ClassVar[str] = "hsic_fourier"
    n_features: Annotated[int, Integer(2, MAX_FEATURES, even=True)] = 200

    @override
    def _features(self, rows: Floats, kernel: Kernel, seed: int) -> Floats:
        return fourier_rows(rows, kernel, self.n_features, seed)

    @override
    def pair_map(self, pairs: Pairs) -> FourierPairs | None:
        if pairs.null != "spectral":
            return None
        x, y = (
            FourierFeatures(kernel, rows.shape[1], self.n_features // 2, (pairs.seed + i) % 2**64)
            for i, (rows, kernel) in enumerate(zip(pairs.rows, pairs.kernels, strict=True))
        )
        return FourierPairs(x, y)

    @override
    def of_sums(self, sums: Sums, pair_map: PairMap, pairs: Pairs) -> Measured:
        assert isinstance(sums, CrossMoments)
        observed = sums.hsic()
        null = product_null(observed, sums.spectra(), sums.n, pairs)
        return Measured(observed, null, effect=sums.alignment())


@INDEPENDENCE.register
@frozen_component
class HSICNystroem(FeatureHSIC):
    """HSIC by Nyström features of both kernels.

    HSIC_b is approximated in linear time from kernel values between all rows and a few landmarks.

    Parameters
    ----------
    n_landmarks
        Number of landmarks of each variable: rows that are drawn at random.

    See Also
    --------
    independence_test : Test for independence.
    HSICFourier : HSIC by random Fourier features.
    HSICb : Biased HSIC.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=100)
    >>> y = x**2 + 0.1 * rng.normal(size=100)
    >>> from bagbasis.hypotheses import HSICNystroem, independence_test
    >>> statistic = HSICNystroem(n_landmarks=30)
    >>> result = independence_test(x, y, statistic=statistic, n_permutations=199)
    >>> result.p_value < 0.05
    True
    """

    name: ClassVar[str] = "hsic_nystroem"
    n_landmarks: Annotated[int, Integer(1)] = 100

    @override
    def _features(self, rows: Floats, kernel: Kernel, seed: int) -> Floats:
        landmarks = np.unique(rows, axis=0)
        if len(landmarks) > self.n_landmarks:
            drawn = generator_of(seed, "features").choice(
                len(landmarks), self.n_landmarks, replace=False
            )
            landmarks = landmarks[drawn]
        return nystroem_rows(kernel(landmarks, landmarks), kernel(rows, landmarks))


@frozen_component
class Correlation(DependenceStatistic):
    """Base: the largest canonical correlation of features, from 0 to 1."""

    nulls: ClassVar[tuple[str, ...]] = ("permutation", "shift")

    @abstractmethod
    def _row_pair(self, pairs: Pairs) -> RowPair:
        """Return the whitened features."""

    @override
    def measure(self, pairs: Pairs) -> Measured:
        pair = self._row_pair(pairs)
        observed = pair.value()
        null = pairs.order_null(observed, pair.values(pairs.orders()), 1.0)
        return Measured(observed, null, effect=observed)


@INDEPENDENCE.register
@frozen_component
class KCCA(Correlation):
    """Regularised kernel canonical correlation.

    The statistic is computed from the kernel matrices of all pairs of rows, in O(n³) time. For many
    pairs use `KCCAFourier`.

    Parameters
    ----------
    ridge
        Ridge penalty κ, which enters the matrices as K̃ + (n κ / 2) I. Without a penalty the
        correlation would always be 1.

    See Also
    --------
    independence_test : Test for independence.
    KCCAFourier : Kernel canonical correlation by random features.
    RDC : Randomised dependence coefficient.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=100)
    >>> y = x**2 + 0.1 * rng.normal(size=100)
    >>> from bagbasis.hypotheses import KCCA, independence_test
    >>> result = independence_test(x, y, statistic=KCCA(ridge=0.05), n_permutations=199)
    >>> result.p_value < 0.05
    True
    """

    name: ClassVar[str] = "kcca"
    ridge: Ridge = DEFAULT_RIDGE

    @override
    def _row_pair(self, pairs: Pairs) -> RowPair:
        n, sides = len(pairs), []
        for kernel, rows in zip(pairs.kernels, pairs.rows, strict=True):
            values, vectors = eigh(CentredGram.of(kernel, rows).whole(), overwrite_a=True)
            shares = values / (values + n * self.ridge / 2)
            strong = shares > _MIN_SHARE
            if not strong.any():
                raise ParameterError(
                    f"ridge is {self.ridge:g}, which leaves nothing of a kernel: take less"
                )
            sides.append(vectors[:, strong] * shares[strong] * n**0.5)
        return RowPair(sides[0], sides[1], correlation=True)


@INDEPENDENCE.register
@frozen_component
class KCCAFourier(Correlation):
    """Regularised kernel canonical correlation by random Fourier features.

    The statistic approximates `KCCA` in linear time.

    Parameters
    ----------
    ridge
        Ridge penalty κ; see `KCCA`.
    n_features
        Number of random features of each variable.

    See Also
    --------
    independence_test : Test for independence.
    KCCA : Kernel canonical correlation.
    RDC : Randomised dependence coefficient.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=100)
    >>> y = x**2 + 0.1 * rng.normal(size=100)
    >>> from bagbasis.hypotheses import KCCAFourier, independence_test
    >>> statistic = KCCAFourier(n_features=50)
    >>> result = independence_test(x, y, statistic=statistic, n_permutations=199)
    >>> result.p_value < 0.05
    True
    """

    name: ClassVar[str] = "kcca_fourier"
    ridge: Ridge = DEFAULT_RIDGE
    n_features: Annotated[int, Integer(2, MAX_FEATURES, even=True)] = 200

    @override
    def _row_pair(self, pairs: Pairs) -> RowPair:
        X, Y = (
            fourier_rows(rows, kernel, self.n_features, (pairs.seed + i) % 2**64)
            for i, (rows, kernel) in enumerate(zip(pairs.rows, pairs.kernels, strict=True))
        )
        return RowPair.whitened(X, Y, self.ridge)


@INDEPENDENCE.register
@frozen_component
class RDC(Correlation):
    """Randomised dependence coefficient.

    The statistic is the largest canonical correlation of random sines of ranks (Lopez-Paz et al.
    2013). It is invariant under monotone transformations of each coordinate.

    Parameters
    ----------
    n_features
        Number of random features of each variable.
    scale
        Scale of the sines' random weights.

    See Also
    --------
    independence_test : Test for independence.
    KCCA : Kernel canonical correlation.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=100)
    >>> y = x**2 + 0.1 * rng.normal(size=100)
    >>> from bagbasis.hypotheses import RDC, independence_test
    >>> result = independence_test(x, y, statistic=RDC(), n_permutations=199)
    >>> result.p_value < 0.05
    True
    """

    name: ClassVar[str] = "rdc"
    kernels: ClassVar[tuple[str, ...]] = ()
    n_features: Annotated[int, Integer(1, MAX_FEATURES)] = 20
    scale: Annotated[float, Real(gt=0)] = 1 / 6

    @override
    def _row_pair(self, pairs: Pairs) -> RowPair:
        generator, n, sides = generator_of(pairs.seed, "features"), len(pairs), []
        for rows in pairs.rows:
            ranks = np.column_stack([rankdata(rows, axis=0) / n, np.ones(n)])
            weights = generator.standard_normal((ranks.shape[1], self.n_features))
            features = np.sin(self.scale / ranks.shape[1] * ranks @ weights)
            vectors, values, _ = svd(features - features.mean(axis=0), full_matrices=False)
            sides.append(vectors[:, values > _MIN_SINGULAR_VALUE * values[0]] * n**0.5)
        return RowPair(sides[0], sides[1], correlation=True)


def fourier_rows(rows: Floats, kernel: Kernel, n_features: int, seed: int) -> Floats:
    """Return random Fourier features of rows, shape (n, n_features).

    Rows far from 0 are moved to their mean, which no statistic sees: float32 has too few digits.
    """
    centre = rows.mean(axis=0)
    if (np.abs(centre) > _FAR * kernel.bandwidth).any():
        rows = rows - centre
    return FourierFeatures(kernel, rows.shape[1], n_features // 2, seed)(rows).astype(np.float64)
