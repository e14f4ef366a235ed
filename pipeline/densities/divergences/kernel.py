"""`kernel_matrix` and `DivergenceKernel`: generalized RBF kernels exp(−D / 2σ²) of bags."""

from __future__ import annotations

from dataclasses import field
from typing import Annotated

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from ...core import OneOf, Real, checked, component
from ...core.annotations import Progress
from ...core.arrays import Floats, as_array
from ...core.errors import DataError
from ...core.sklearn_bases import BaseEstimator, TransformerMixin, of_bags
from ...data.bags.bags import BagsInMemory, as_bags
from .matrix import ADVICE, FLOAT_BYTES, divergence_matrix, median_bandwidth
from .neighbour_estimates import BY_KERNEL, DivergenceSpec, PointBandwidth
from .resources import require_memory

MAX_SCALE = 1e150  # its square still fits into a double
_SCALE = Real(gt=0, le=MAX_SCALE) | OneOf("median")


@checked
def kernel_matrix(D: ArrayLike, scale: Annotated[float | str, _SCALE] = "median") -> Floats:
    """Turn squared distances into a Gaussian kernel matrix.

    The kernel is exp(−D / 2σ²) for squared distances ρ² = D (Sutherland 2016, eq. 2.3), in [0, 1].

    Negative estimates are replaced by zero. A directed divergence gives a kernel that is not
    symmetric. Average both directions first, as `DivergenceKernel` does.

    Parameters
    ----------
    D : array_like, shape (N, M)
        Divergences from `divergence_matrix`.
    scale : float or "median"
        Scale σ, a distance in the units of √D. "median" is `median_scale`, which needs the
        divergences between the bags of one set.

    Raises
    ------
    DataError
        If the kernel does not fit in memory, D is not a finite matrix, or D is not square for
        scale="median".
    ParameterError
        If the scale is neither positive nor "median".

    See Also
    --------
    divergence_matrix : Divergences between bags.
    median_scale : Kernel scale from distances of bags.
    PSDRepair : Repair an indefinite kernel matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from bagbasis.densities import kernel_matrix
    >>> kernel_matrix(np.array([[0.0, 2.0], [2.0, 0.0]]), scale=1.0).round(3)
    array([[1.   , 0.368],
           [0.368, 1.   ]])
    """
    divergences = _as_matrix(D)
    sigma = median_scale(divergences) if isinstance(scale, str) else scale
    n, m = divergences.shape
    require_memory(f"the kernel of {n:,} × {m:,} bags", FLOAT_BYTES * n * m, ADVICE)
    kernel = np.maximum(divergences, 0)
    kernel /= -2 * sigma**2
    return np.exp(kernel, out=kernel)


def median_scale(D: ArrayLike) -> float:
    """Return the median distance between different bags, or 1 if it is not positive.

    Parameters
    ----------
    D : array_like, shape (N, N)
        Divergences, which are squared distances, between the bags of one set.

    Raises
    ------
    DataError
        If D is not square.

    See Also
    --------
    median_bandwidth : Bandwidth from distances between points.
    kernel_matrix : Kernel matrix from squared distances.

    Examples
    --------
    >>> import numpy as np
    >>> from bagbasis.densities import median_scale
    >>> median_scale(np.array([[0.0, 4.0], [4.0, 0.0]]))
    2.0
    """
    divergences = _as_matrix(D)
    n, m = divergences.shape
    if n != m:
        raise DataError(
            f"divergences have shape {divergences.shape}; the median is that of a set of bags with "
            "itself: pass its scale as a number"
        )
    require_memory(f"the median of {n:,} × {n:,} divergences", FLOAT_BYTES * n * n, ADVICE)
    different = divergences[~np.eye(n, dtype=bool)]
    median = float(np.median(different)) if len(different) else 0.0
    return float(np.sqrt(median)) if median > 0 else 1.0


@component
class DivergenceKernel(TransformerMixin, BaseEstimator):
    """Kernel between bags from an estimated divergence.

    Use the values exp(−D / 2σ²) with methods that take a precomputed kernel.

    The kernel between new bags and training bags uses σ and the bandwidth of the training bags. For
    "kl" and "renyi", D is the mean of both directions. The kernel of estimated divergences may be
    indefinite; put `PSDRepair` after it in a pipeline.

    Parameters
    ----------
    divergence, k, alpha, bandwidth
        Parameters of `divergence_matrix`. bandwidth="median" is computed from the training bags.
    scale
        Scale σ in the units of √D. "median" is the median over pairs of different training bags.

    Attributes
    ----------
    bags_ : Bags
        The N training bags.
    scale_ : float
        Scale σ.
    bandwidth_ : float or None
        Bandwidth of the point kernel; None if the divergence is not an MMD.

    See Also
    --------
    divergence_matrix : Divergences between bags.
    PSDRepair : Repair an indefinite kernel matrix.
    PrecomputedNystroem : Nyström features of a kernel matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from bagbasis.densities import DivergenceKernel, PSDRepair
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.svm import SVC
    >>> rng = np.random.default_rng(0)
    >>> bags = [rng.normal(i % 2, 1, size=(60, 1)) for i in range(40)]
    >>> labels = np.arange(40) % 2
    >>> model = make_pipeline(
    ...     DivergenceKernel("js"), PSDRepair("clip"), SVC(kernel="precomputed")
    ... ).fit(bags[:30], labels[:30])
    >>> float(model.score(bags[30:], labels[30:]))
    1.0
    """

    divergence: str = field(default="symmetric_kl", kw_only=False)
    scale: Annotated[float | str, _SCALE] = "median"
    k: int | None = None
    alpha: float | None = None
    bandwidth: PointBandwidth | None = None

    def __sklearn_tags__(self) -> Tags:
        """Return scikit-learn's tags: X consists of bags."""
        return of_bags(super().__sklearn_tags__())

    @checked
    def fit(
        self, X: BagsInMemory, y: object = None, *, progress: Progress | None = None
    ) -> DivergenceKernel:
        """Store the training bags; scale="median" also computes the divergences of all pairs."""
        scale = _SCALE.check("scale", self.scale)
        if isinstance(scale, str):
            self.fit_transform(X, y, progress=progress)
        else:
            self._keep(X)
            self.scale_ = scale
        return self

    @checked
    def fit_transform(
        self, X: BagsInMemory, y: object = None, *, progress: Progress | None = None
    ) -> Floats:
        """Return the symmetric kernel matrix of the training bags, shape (N, N).

        Raises
        ------
        BagError, DataError, ParameterError
            If `divergence_matrix` raises one of these errors.
        """
        scale = _SCALE.check("scale", self.scale)
        self._keep(X)
        divergences = self._divergences(self.bags_, None, progress)
        if self._spec().is_directed:
            divergences += divergences.T
            divergences /= 2
        self.scale_ = median_scale(divergences) if isinstance(scale, str) else scale
        return kernel_matrix(divergences, self.scale_)

    @checked
    def transform(self, X: BagsInMemory, *, progress: Progress | None = None) -> Floats:
        """Return the kernel between bags of X and training bags, shape (n_bags, N)."""
        check_is_fitted(self)
        names = self.bags_.coordinate_names
        X = as_bags(X).in_order_of(names, what="bags of X", reference="the kernel was fitted on")
        divergences = self._divergences(X, self.bags_, progress)
        if self._spec().is_directed:
            divergences += self._divergences(self.bags_, X, progress).T
            divergences /= 2
        return kernel_matrix(divergences, self.scale_)

    def _keep(self, X: BagsInMemory) -> None:
        spec = self._spec()
        self.bags_ = as_bags(X)
        self.bandwidth_: float | None = None
        if spec.name in BY_KERNEL:
            bandwidth = spec.bandwidth
            median = isinstance(bandwidth, str)
            self.bandwidth_ = median_bandwidth(self.bags_) if median else float(bandwidth)

    def _spec(self) -> DivergenceSpec:
        return DivergenceSpec.of(self.divergence, self.k, self.alpha, self.bandwidth)

    def _divergences(
        self, X: BagsInMemory, Y: BagsInMemory | None, progress: Progress | None
    ) -> Floats:
        return divergence_matrix(
            X,
            Y,
            divergence=self.divergence,
            k=self.k,
            alpha=self.alpha,
            bandwidth=self.bandwidth_,
            progress=progress,
        )


def _as_matrix(D: ArrayLike) -> Floats:
    matrix = as_array("D", D, np.float64)
    if matrix.ndim != 2:
        raise DataError(f"divergences have shape {matrix.shape}; expected (N, M)")
    if not np.isfinite(matrix).all():
        i, j = np.argwhere(~np.isfinite(matrix))[0]
        raise DataError(f"the divergence of bag {i} from bag {j} is {matrix[i, j]}; leave it out")
    return matrix
