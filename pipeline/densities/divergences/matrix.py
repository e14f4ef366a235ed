"""`divergence_matrix`: estimated divergences of all pairs of bags, for small sets."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core import checked
from ...core.annotations import Progress
from ...core.arrays import Floats
from ...core.errors import DataError, warn
from ...data.bags.bags import Bags, BagsInMemory, as_bags, concatenate
from ...data.store.sampling import MEDIAN_ROWS, median_distance, spread_rows
from ...execution.worker_threads import worker_cores
from .mmd import PAIRS_PER_TILE, squared_discrepancies
from .neighbour_estimates import BY_KERNEL, DivergenceSpec, PointBandwidth, estimator
from .neighbours import Ranks, SearchableBags, directed_matrix
from .resources import BLOCK_POINTS, PairCount, require_memory

FLOAT_BYTES = 8  # all arrays are float64
# Fraction of points that repeat others more than k times. Of normal numbers rounded to tenths, a
# mean apart by 1, "kl" then is 0.07 and truly 0.5, "l2" 0.001 and truly 0.125.
MAX_REPEATED = 0.05
_MAX_SEARCHED = 32  # bags that are searched for copies of points
ADVICE = (
    "use fewer bags, divergences from some anchors (Y) with PrecomputedNystroem, or an embedding, "
    "whose cost grows with N and not with N²"
)


@checked
def divergence_matrix(
    X: BagsInMemory,
    Y: BagsInMemory | None = None,
    *,
    divergence: str = "kl",
    k: int | None = None,
    alpha: float | None = None,
    bandwidth: PointBandwidth | None = None,
    progress: Progress | None = None,
    max_bytes: int | None = None,
) -> Floats:
    """Estimate the divergence of every bag of X from every bag of Y.

    The estimates are those of Sutherland 2016, §2.1-2.2, and Sutherland et al. 2016, §5.

    ================ ==========================================================================
    "kl"             KL(p ‖ q) = ∫p log(p/q) in nats, p of the row and q of the column
    "symmetric_kl"   KL(p ‖ q) + KL(q ‖ p): the sum, not its half
    "renyi"          log(∫p^α q^(1−α)) / (α − 1) in nats
    "hellinger"      ½∫(√p − √q)² = 1 − ∫√(pq), in [0, 1]
    "l2"             ∫(p − q)²
    "js"             H((p + q)/2) − ½H(p) − ½H(q) in nats, in [0, log 2]
    "mmd"            squared distance of mean maps, kernel exp(−‖x − y‖²/2σ²); biased, ≥ 0
    "mmd_unbiased"   the same, unbiased
    ================ ==========================================================================

    The first six divergences are estimated from distances to k-th neighbours; `neighbour_estimates`
    has the formulas. The MMDs use all pairs of points (FastMMD 2015). All divergences behave like
    squared distances, so that `kernel_matrix` accepts each of them. The ranges hold for true
    values. An estimate may be negative if p ≈ q, and is returned unchanged. "symmetric_kl",
    "hellinger", "l2" and "js" are symmetric; only "kl" and "renyi" have a direction.

    A bag has divergence 0 from itself, and from a bag of the same points in the same order.
    Estimates by neighbours are those of densities, in which points do not repeat. Repeated points
    have distance zero. Such a distance is replaced by the smallest positive distance within the
    searched bag, so that estimates stay finite. They may be far off, which a warning says if more
    than 5 % of the points have k equal points or more in their bag, as counts and rounded numbers
    have. "js" and the MMDs allow repeated points. Copies of rows, which bags do not share, are
    warned of for "js", too.

    The squared L2 distance between Gaussian kernel density estimates of bandwidth h equals "mmd"
    with bandwidth √2·h, times (4πh²)^(−d/2).

    Parameters
    ----------
    X, Y : Bags, or a list of arrays of shape (n_i, n_dims)
        N and M bags. If Y is None, bags of X are compared with each other.
    divergence : str
        Name of the divergence, see the table.
    k : int, default 3
        Number of the neighbour whose distance is used; not for the MMDs. "l2" needs at least 2, and
        3 for a finite variance.
    alpha : float, default 0.8
        Order of the divergence "renyi", above 0 and below k + 1, but not 1. No other divergence
        uses it.
    bandwidth : float or "median", default "median"
        Bandwidth σ of the MMDs, in the units of the points. "median" is `median_bandwidth` of X and
        Y.
    progress : callable, optional
        Function that is called with (pairs of bags done, pairs in all).
    max_bytes : int, optional
        Largest memory that may be used. Default: the available memory.

    Returns
    -------
    array of float64, shape (N, M)
        Divergences. The matrix is exactly symmetric if Y is None and the divergence has no
        direction.

    Raises
    ------
    BagError
        If a bag has k points or fewer, or one point for "mmd_unbiased".
    DataError
        If the matrix does not fit in memory (checked first), dimensions differ, or an estimate is
        not finite.
    ParameterError
        If a parameter is out of range or does not belong to this divergence.

    See Also
    --------
    DivergenceKernel : Precomputed kernel from a divergence.
    bagbasis.singlecell.sample_distances : Distances between samples.
    bagbasis.HDDEmbedding : Density coefficients under a chosen density distance.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = [rng.normal(0, s, (40, 1)) for s in (1.0, 1.1, 3.0)]
    >>> from bagbasis.densities import divergence_matrix
    >>> D = divergence_matrix(X, divergence='symmetric_kl', k=5)
    >>> D.shape, bool(D[0, 2] > D[0, 1])
    ((3, 3), True)
    """
    spec = DivergenceSpec.of(divergence, k, alpha, bandwidth)
    rows = as_bags(X)
    columns = None
    if Y is not None:
        columns = as_bags(Y).in_order_of(
            rows.coordinate_names, what="bags of Y", reference="those of X are"
        )
    if columns is not None and columns.n_dims != rows.n_dims:
        raise DataError(f"bags of X have dimension {rows.n_dims}, those of Y {columns.n_dims}")
    shape = (len(rows), len(rows if columns is None else columns))
    if 0 in shape:
        return np.zeros(shape)
    what = f"the divergence matrix of {shape[0]:,} × {shape[1]:,} bags"
    require_memory(what, needed_bytes(rows, columns, spec), ADVICE, max_bytes)
    estimate = _by_kernel if spec.name in BY_KERNEL else _by_neighbours
    with np.errstate(all="ignore"):  # `_check_finite` raises and names the bags
        matrix = estimate(rows, columns, spec, progress)
    _zero_between_equals(matrix, rows, rows if columns is None else columns)
    _check_finite(matrix, spec)
    return matrix


def median_bandwidth(X: BagsInMemory) -> float:
    """Return the median distance between up to 1,024 points; 1 if most points are equal.

    Parameters
    ----------
    X : Bags, or a list of arrays of shape (n_i, n_dims)
        Bags whose points are pooled.

    See Also
    --------
    median_scale : Kernel scale from distances between bags.
    kde_at : Kernel density estimates.
    bagbasis.MeanMapEmbedding : Kernel mean embedding.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = [rng.normal(0, s, (40, 1)) for s in (1.0, 1.1, 3.0)]
    >>> from bagbasis.densities import median_bandwidth
    >>> 0.5 < median_bandwidth(X) < 5
    True
    """
    return median_distance(spread_rows(as_bags(X).points, MEDIAN_ROWS))


def needed_bytes(X: Bags, Y: Bags | None, spec: DivergenceSpec) -> int:
    """Return the bytes of a `divergence_matrix`: results, trees and arrays of all threads."""
    columns = X if Y is None else Y
    entries = len(X) * len(columns)
    points = X.n_points + (0 if Y is None else Y.n_points)
    if spec.name in BY_KERNEL:
        tile = max(PAIRS_PER_TILE, int(columns.sizes.max()))
        return FLOAT_BYTES * (entries + 2 * points * X.n_dims + 2 * worker_cores() * tile)
    ranks = estimator(spec).ranks
    own = _own_distances(X, columns, ranks)
    if Y is not None:
        own += _own_distances(Y, X, ranks)
    matrices = 1 if spec.is_directed else 2
    trees = points * (2 * X.n_dims + 2)
    block = max(BLOCK_POINTS, int(X.sizes.max()), int(columns.sizes.max())) * (X.n_dims + 10)
    return FLOAT_BYTES * (matrices * entries + trees + 6 * own + worker_cores() * block)


def _own_distances(X: Bags, Y: Bags, ranks: Ranks) -> int:
    met = np.unique(Y.sizes)
    sizes, counts = np.unique(X.sizes, return_counts=True)
    return sum(
        size * count * len(ranks.of(size, met))
        for size, count in zip(sizes.tolist(), counts.tolist(), strict=True)
    )


def _by_kernel(X: Bags, Y: Bags | None, spec: DivergenceSpec, progress: Progress | None) -> Floats:
    if spec.bandwidth == "median":
        bandwidth = median_bandwidth(X if Y is None else concatenate([X, Y]))
    else:
        bandwidth = float(spec.bandwidth)
    pairs = PairCount(len(X) * len(X if Y is None else Y), progress)
    return squared_discrepancies(X, Y, bandwidth, spec.name == "mmd_unbiased", pairs)


def _by_neighbours(
    X: Bags, Y: Bags | None, spec: DivergenceSpec, progress: Progress | None
) -> Floats:
    estimate = estimator(spec)
    ranks, statistic = estimate.ranks, estimate.statistic
    columns = X if Y is None else Y
    both = not spec.is_directed
    pairs = PairCount(len(X) * len(columns) * (2 if both and Y is not None else 1), progress)
    p = SearchableBags(X, spec.k, ranks, columns.sizes, "X")
    q = p if Y is None else SearchableBags(Y, spec.k, ranks, X.sizes, "Y")
    some = [*X[:_MAX_SEARCHED], *(() if Y is None else Y[:_MAX_SEARCHED])]
    _warn_of_repeated(spec, some, X.n_points + columns.n_points, p.n_repeated + q.n_repeated)
    matrix = directed_matrix(p, q, statistic, pairs)
    if both:
        matrix += (matrix if Y is None else directed_matrix(q, p, statistic, pairs)).T
    estimate.finish(matrix, p, q)
    return matrix


def _warn_of_repeated(
    spec: DivergenceSpec, bags: Sequence[NDArray[Any]], n_points: int, n_repeated: int
) -> None:
    """Warn if many points repeat others: they have no density. "js" counts points, and allows it.

    Points that their own bag repeats, and other bags do not, are copies, which "js" takes for
    peaks, too.

    Parameters
    ----------
    bags : list of arrays
        Bags that are searched for copies.
    n_points, n_repeated : int
        Points, and those with k equal points or more in their bag.
    """
    if spec.name != "js" and n_repeated > MAX_REPEATED * n_points:
        warn(
            f"{n_repeated / n_points:.0%} of the points have {spec.k} equal points or more in "
            f"their bag, as counts and rounded numbers have; {spec.name!r} is an estimate for "
            "densities, and may be far off: use 'js' or 'mmd', which allow repeated points"
        )
        return
    if not bags:
        return
    rows = np.concatenate([_distinct(bag) for bag in bags])
    copied = float(rows[:, -1].mean())
    _, shared = np.unique(rows[:, :-1], axis=0, return_counts=True)
    if copied > MAX_REPEATED and 5 * float((shared > 1).mean()) < copied:
        warn(
            f"{copied:.0%} of the different points occur more than once in their bag, and hardly "
            "any in two bags, as in copies of rows: estimates by neighbours take copies for peaks "
            "of the density, and may be far too large; remove them (numpy.unique(bag, axis=0)), or "
            "use 'mmd'"
        )


def _distinct(bag: NDArray[Any]) -> Floats:
    """Return the different points of a bag, each with a column that is 1 if the bag repeats it."""
    points, counts = np.unique(bag, axis=0, return_counts=True)
    return np.column_stack([points, counts > 1])


def _zero_between_equals(matrix: Floats, rows: Bags, columns: Bags) -> None:
    """Set divergences to 0 for bags with the same points in the same order, in place.

    This includes the diagonal. Such bags are not independent samples, as k-NN estimates assume.
    """
    fingerprints = _fingerprints(rows)
    for j, fingerprint in enumerate(_fingerprints(columns)):
        matrix[fingerprints == fingerprint, j] = 0


def _fingerprints(bags: Bags) -> NDArray[np.str_]:
    points = bags.points.astype(np.float64, copy=False)
    parts = Bags.trusted(points, bags.offsets)
    return np.array([hashlib.blake2b(part.tobytes(), digest_size=16).hexdigest() for part in parts])


def _check_finite(matrix: Floats, spec: DivergenceSpec) -> None:
    for i, row in enumerate(matrix):
        if not np.isfinite(row).all():
            j = int(np.flatnonzero(~np.isfinite(row))[0])
            raise DataError(
                f"the {spec.name!r} divergence of bag {i} of X from bag {j} of Y is {row[j]} in "
                "float64: remove repeated points, scale the points, or choose another divergence"
            )
