"""`MeanMapEmbedding`: means of random Fourier features; `mmd_squared`: their distances."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import pdist
from sklearn.metrics.pairwise import euclidean_distances
from typing_extensions import override

from ..core import Integer, KernelName, OneOf, RandomSeed, Real, checked
from ..core.arrays import Floats, Integers, as_array
from ..core.errors import BagError, DataError
from ..data.bags.bags import Bags
from ..data.bags.box import Box
from ..data.store.sampling import MEDIAN_ROWS, spread_rows
from .base import OF_SIDE, ChoiceSample, UnboundedEmbedding, UnboundedSpec
from .bases.functions import MAX_FUNCTIONS
from .description import Description
from .kernels.mean_map_kernels import MEAN_MAPS
from .kinds import embedding
from .random_features.frequencies import draw_frequencies

MIN_BANDWIDTH = 1e-6  # fraction of the box's side; below it, float32 does not resolve the phases
MAIN_SHARE = 0.5  # coordinates with this fraction of the squared frequency name the wave
POINTS_PER_BAG = 4  # with several points per bag, distances within bags count, too

Frequencies = Annotated[int, Integer(2, MAX_FUNCTIONS, even=True)]
_Bandwidth = Annotated[float, Real(ge=MIN_BANDWIDTH, kind=OF_SIDE)]
MaternOrder = Annotated[float, Real(ge=0.5)]


@dataclass(frozen=True, kw_only=True)
class MeanMapSpec(UnboundedSpec):
    """A fitted mean map; see `MeanMapEmbedding` for the fields.

    See Also
    --------
    bagbasis.MeanMapEmbedding : Kernel mean embedding.
    EmbeddingSpec : Base class of fitted embeddings.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(0.5, 2.0, 80)
    >>> X = [rng.normal(0, s, (30, 2)) for s in y]
    >>> from bagbasis import MeanMapEmbedding
    >>> spec = MeanMapEmbedding(n_features=16).fit(X).spec_
    >>> spec.n_features
    16
    """

    kernel: KernelName
    n_features: Frequencies
    bandwidth: _Bandwidth
    nu: MaternOrder
    seed: RandomSeed
    phase: bool = False

    OMITTED: ClassVar = (*UnboundedSpec.OMITTED, "phase")

    @property
    @override
    def seconds_per_point(self) -> float:
        return 1.5e-10 * self.n_features * (1 + self.n_dims / 8) + 5e-9

    @override
    def describe(self) -> Description:
        width = f"width {self.bandwidth:.3g} of the box"
        what = "phases" if self.phase else "mean"
        features = f"{self.n_features} features of a {self.kernel} kernel"
        return Description(f"{what} of {features}, {width}")

    def frequencies(self) -> Floats:
        """Return the frequencies ω as columns, shape (n_dims, n_features / 2)."""
        return draw_frequencies(
            self.kernel, self.n_dims, self.n_features // 2, self.bandwidth, self.seed, self.nu
        )

    @override
    def feature_names(self, coordinates: Sequence[str]) -> list[str]:
        # each name lists the coordinates along which the wave varies most
        squares = self.frequencies() ** 2
        order = np.argsort(-squares, axis=0, kind="stable")
        sums = np.cumsum(np.take_along_axis(squares, order, axis=0), axis=0)
        counts = 1 + (sums < MAIN_SHARE * sums[-1]).sum(axis=0)
        along = [
            ",".join(coordinates[j] for j in places[:count])
            for places, count in zip(order.T.tolist(), counts.tolist(), strict=True)
        ]
        waves = range(len(along))
        return [f"{wave}{j}({along[j]})" for wave in ("sin", "cos") for j in waves]

    @override
    def fill(self, bags: Bags, out: NDArray[Any], outside: Integers) -> None:
        turns = _turns(self, out.dtype.name)
        kernel = MEAN_MAPS[out.itemsize]
        self.run_kernel(kernel, bags, self.margin, turns, out, outside, paired=True)
        if self.phase:
            sines, cosines = np.hsplit(out, 2)
            lengths = np.hypot(sines, cosines)
            scale = np.sqrt(2 / self.n_features) / np.where(lengths == 0, 1, lengths)
            sines *= scale
            cosines *= scale


@lru_cache(maxsize=4)
def _turns(spec: MeanMapSpec, dtype: str) -> NDArray[Any]:
    """Return frequencies in turns per unit, with a row of zeros if n_dims is odd."""
    turns = np.zeros((2 * -(-spec.n_dims // 2), spec.n_features // 2), dtype=dtype)
    turns[: spec.n_dims] = spec.frequencies() / (2 * np.pi)
    return turns


@embedding("mean_map", MeanMapSpec)
class MeanMapEmbedding(UnboundedEmbedding[MeanMapSpec]):
    """Kernel mean embedding, approximated by random Fourier features.

    Distances between the embeddings are maximum mean discrepancies (Sutherland et al. 2016, §5;
    FastMMD 2015).

    A(X) = (1/n) Σ_j z(x_j), where z are paired random Fourier features with z(x)ᵀz(y) ≈ k(x, y) and
    ‖z(x)‖ = 1. Thus A(X)ᵀA(Y) approximates the mean of k(x, y) over the points of both bags.
    ‖A(X) − A(Y)‖² approximates the (biased) MMD² (FastMMD 2015, eq. 12). The error decreases as
    n_features^(−½), and the time is linear in the number of points. `mmd_squared` gives the
    unbiased MMD².

    Parameters
    ----------
    kernel
        Kernel k: exp(−‖Δ‖₂² / 2σ²), exp(−‖Δ‖₁ / σ), or the Matérn kernel with parameter ν and
        length σ (Sutherland 2016, §3.2).
    n_features
        Length of the embedding: half sines, half cosines.
    bandwidth
        Bandwidth σ as a fraction of the box's side. Distances are measured in the unit cube, so
        that coordinates with different units have equal weights. For a cubic box of side w, σ in
        the units of the data is w times this value. "median" is the median distance (L1 for the
        Laplacian kernel) between distinct points, from up to 1,024 points of a sample of bags.
    nu
        Parameter ν of the Matérn kernel. ν = ½ gives exp(−‖Δ‖₂ / σ); a large ν approaches the
        Gaussian kernel.
    seed
        Seed for drawing the frequencies. Each block of frequencies depends on the seed and the
        block number only, so that all machines draw the same frequencies.
    phase
        Whether to divide each pair of a sine and a cosine by its length, so that only the phase
        remains (Law, Yau & Sejdinovic 2017, Testing and learning on distributions with symmetric
        noise, §3). Symmetric noise on the points does not change the phases, except by chance in
        small bags. The noise may differ between bags. Distances are then no longer MMDs.

    Attributes
    ----------
    spec_ : MeanMapSpec
        The fitted embedding, with all parameters that `fit` chose.

    Notes
    -----
    If bags consist of several clusters, the median distance is a wide bandwidth. Also try a third
    of it. The time is proportional to n_features.

    The kernel exp(−MMD² / 2σ²) between bags takes two lines::

        A = MeanMapEmbedding().fit_transform(bags)
        z = RandomFourierFeatures(n_features=4096).fit_transform(A)  # z @ z.T is the kernel matrix

    or ``DoubleBasisRegressor(MeanMapEmbedding())``. A kernel matrix from the unbiased estimate::

        d2 = mmd_squared(A, bags.sizes)
        kernel = np.exp(-d2 / (2 * sigma**2))

    See Also
    --------
    SlicedWassersteinEmbedding : Quantiles along directions; needs no bandwidth.
    bagbasis.hypotheses.two_sample_test : Compares samples by the same distance.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(0.5, 2.0, 80)
    >>> X = [rng.normal(0, s, (30, 2)) for s in y]
    >>> from bagbasis import MeanMapEmbedding
    >>> MeanMapEmbedding(n_features=64).fit_transform(X).shape
    (80, 64)
    """

    smoothness: ClassVar = {"bandwidth": {"median": (0.1, 0.2, 0.4)}}
    kernel: KernelName = "gaussian"
    n_features: Frequencies = 256
    bandwidth: _Bandwidth | Annotated[str, OneOf("median")] = "median"
    nu: MaternOrder = 1.5
    seed: RandomSeed = 0
    phase: bool = False

    @override
    def decide(self, sample: ChoiceSample, out_of_box: str, box: Box) -> MeanMapSpec:
        # the sample is read only for bandwidth="median"
        bandwidth = self.bandwidth
        spec = MeanMapSpec(
            kernel=self.kernel,
            n_features=self.n_features,
            bandwidth=1.0 if isinstance(bandwidth, str) else bandwidth,
            nu=self.nu,
            seed=self.seed,
            phase=self.phase,
            out_of_box=out_of_box,
            box=box,
        )
        if not isinstance(bandwidth, str):
            return spec
        metric = "cityblock" if self.kernel == "laplacian" else "euclidean"
        median = _median_distance(sample(), box, out_of_box == "drop", metric)
        return replace(spec, bandwidth=median)


def _median_distance(sample: Iterable[Bags], box: Box, drop: bool, metric: str) -> float:
    """Return the median distance of distinct points in the unit cube; 1 if there are none."""
    rng = np.random.default_rng(0)
    parts = []
    for bags in sample:
        chosen = spread_rows(np.arange(len(bags)), MEDIAN_ROWS)
        draws = rng.random((len(chosen), POINTS_PER_BAG)) * bags.sizes[chosen, None]
        rows = bags.offsets[chosen, None] + draws.astype(np.int64)
        unit = box.to_unit(bags.points[rows.ravel()].astype(np.float64))
        parts.append(unit[((unit >= 0) & (unit <= 1)).all(axis=1)] if drop else unit.clip(0, 1))
    if not parts:
        raise DataError("no bags to take the median distance of; give bandwidth a number")
    points = spread_rows(np.concatenate(parts), MEDIAN_ROWS)
    distances = pdist(points, metric) if len(points) > 1 else np.zeros(0)
    positive = distances[distances > 0]
    return float(np.median(positive)) if len(positive) else 1.0


@checked
def mmd_squared(
    A: ArrayLike,
    sizes_A: ArrayLike | None = None,
    *,
    B: ArrayLike | None = None,
    sizes_B: ArrayLike | None = None,
    unbiased: bool = True,
) -> Floats:
    """Return the squared maximum mean discrepancy between bags from their mean maps.

    The result has shape (n_A, n_B): MMD² between each bag of A and each bag of B.

    The biased estimate ‖μ − μ'‖² (FastMMD 2015, eq. 12) is never negative. It is too large on
    average, in particular for small bags. The unbiased estimate leaves out the kernel of each point
    with itself, which is 1 (FastMMD 2015, eq. 13): MMD_u² = MMD_b² − (1 − ‖μ‖²)/(m − 1) −
    (1 − ‖μ'‖²)/(n − 1). Its mean is 0 if both bags have the same density, so it may be negative.

    Parameters
    ----------
    A, B : shape (n, s)
        Embeddings of bags by the same `MeanMapEmbedding`. Without B, all pairs of bags of A are
        compared, and the diagonal is zero.
    sizes_A, sizes_B : int, shape (n,)
        Number of points of each bag (`Bags.sizes`), without points removed by "drop". Not used by
        the biased estimate.
    unbiased : bool, default True
        Whether to return the unbiased estimate.

    Raises
    ------
    BagError
        If a bag has one point only; it has no unbiased estimate.
    DataError
        If shapes do not match, or the unbiased estimate is asked for without sizes.

    See Also
    --------
    bagbasis.MeanMapEmbedding : Kernel mean embedding.
    bagbasis.hypotheses.two_sample_test : Compare two samples.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(0.5, 2.0, 80)
    >>> X = [rng.normal(0, s, (30, 2)) for s in y]
    >>> from bagbasis import MeanMapEmbedding
    >>> from bagbasis.embeddings import mmd_squared
    >>> A = MeanMapEmbedding().fit_transform(X)
    >>> mmd_squared(A, sizes_A=[len(x) for x in X]).shape
    (80, 80)
    """
    first = _rows(A, "A")
    second = first if B is None else _rows(B, "B")
    if first.shape[1] != second.shape[1]:
        raise DataError(f"A has {first.shape[1]} features and B {second.shape[1]}")
    if not first.shape[1]:
        raise DataError("A has no features; expected the features of a MeanMapEmbedding")
    squares: Floats = euclidean_distances(first, None if B is None else second, squared=True)
    if not unbiased:
        return squares
    excess = _excess(first, sizes_A, "sizes_A")
    squares -= excess[:, None]
    squares -= excess if B is None else _excess(second, sizes_B, "sizes_B")
    if B is None:
        np.fill_diagonal(squares, 0.0)
    return squares


def _rows(A: ArrayLike, name: str) -> Floats:
    rows = as_array(name, A, np.float64)
    if rows.ndim != 2 or len(rows) == 0:
        raise DataError(f"{name} has shape {rows.shape}; expected (n_bags, n_features)")
    if not np.isfinite(rows).all():
        raise DataError(f"{name} holds NaN or infinity")
    return rows


def _excess(rows: Floats, sizes: ArrayLike | None, name: str) -> Floats:
    """Return (1 − ‖μ‖²)/(n − 1), the mean contribution of k(x, x) to the biased estimate."""
    counts = as_array(name, sizes if sizes is not None else [])
    if counts.shape != (len(rows),) or counts.dtype.kind not in "iu":
        raise DataError(f"{name} is to be the number of points of each of the {len(rows)} bags")
    if counts.min() < 2:
        raise BagError(
            int(np.argmin(counts)), f"{counts.min()} points in {name}; unbiased MMD² needs two"
        )
    excess: Floats = (1.0 - (rows**2).sum(axis=1)) / (counts - 1.0)
    return excess
