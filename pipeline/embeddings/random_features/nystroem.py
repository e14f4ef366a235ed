"""`NystroemFeatures`: kernel features from landmarks, which are some of the bags."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, lapack
from scipy.spatial.distance import cdist
from sklearn.utils.validation import check_is_fitted
from typing_extensions import override

from ...core import Integer, OneOf, Real, check_parameters
from ...core.arrays import Floats, Integers
from ...core.errors import warn
from ...data.store.sampling import MEDIAN_ROWS, median_distance, median_l1_distance, spread_rows
from ...execution.costs import SECONDS_PER_PRODUCT, Cost
from ...execution.passes import check_memory
from ...execution.pool import even_edges, run_kernel
from ...execution.products import multiply, multiply_by_triangle
from ..transforms import NO_ARRAYS, Arrays
from .base import ArraySpec, Blocks, LabelledSums, RandomFeatures, SampleRows, check_blocks
from .completion import COMPLETE, Completion
from .kernel_profiles import KERNELS_OF_DISTANCES, LAPLACIAN, kernel_profile
from .kernels.landmark_kernels import gaussian_values
from .landmarks import LANDMARK_METHODS, choose_by_cholesky, choose_spread
from .registered import random_features

SAMPLED_PER_LANDMARK = 2  # number of sampled rows for each landmark
# Fraction of the trace of the landmarks' kernel that is added to its diagonal. Smaller eigenvalues
# come from rounding of float32 kernel values, and whitening would amplify them.
_SHIFT = 1e-7
# Bytes of float64 kernel values in a block. A quarter of this size stays in the cache and takes one
# thread 8 % less time. Two threads then take twice the time, because they wait more often.
_BLOCK_BYTES = 2**25
_SECONDS_PER_VALUE = 1e-9  # for the exponential of a kernel value
_SECONDS_PER_GAP = 1e-9  # per coordinate of a distance that is not a matrix product
# Whitening is deferred to the sums for all but the first landmarks. There must be enough first
# landmarks: the mean square of the residual kernel must be far below its smallest eigenvalue.
# Float32 sums are then about as exact as sums of whitened features.
# Divisors that give the number of first landmarks; half of the landmarks would save no time.
FIRST_FRACTIONS = (16, 8, 4)
MAX_SQUARE = 0.1  # relative to the smallest eigenvalue
MIN_DEFERRED = 256  # with fewer landmarks, whitening takes no time
PROBES = 32  # columns of the residual kernel from which its mean square is estimated
POWER_STEPS = 8  # power iterations for its smallest eigenvalue
_FARTHEST = 1e15  # in widths; squares of larger distances would exceed float32


@dataclass(frozen=True)
class LandmarkKernel:
    """Kernel of rows in units of the width, or the weighted mean of kernels of blocks.

    The inputs of a block of weight w are multiplied by √w in `EmbeddingUnion`, so that the width of
    the block is √w.
    """

    name: str
    nu: float
    blocks: Blocks = ()

    def __call__(self, a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
        """Return k for all pairs of rows, in the dtype of the rows."""
        return self.of_parts(self.split(a), self.split(b))

    def split(self, rows: NDArray[Any]) -> list[NDArray[Any]]:
        """Return the columns of each block, in units of its width; the rows without blocks."""
        if not self.blocks:
            return [rows]
        ends = np.cumsum([n for n, _ in self.blocks])[:-1]
        parts = zip(np.split(rows, ends, axis=1), self.blocks, strict=True)
        return [part / weight**0.5 for part, (_, weight) in parts]

    def of_parts(self, a: Sequence[NDArray[Any]], b: Sequence[NDArray[Any]]) -> NDArray[Any]:
        """Return k for all pairs of rows from the parts that `split` returns."""
        if not self.blocks:
            return self._of(*a, *b)
        values = np.zeros((len(a[0]), len(b[0])), a[0].dtype)
        for x, y, (_, weight) in zip(a, b, self.blocks, strict=True):
            of_block = self._of(x, y)
            of_block *= weight
            values += of_block
        values /= sum(weight for _, weight in self.blocks)
        return values

    @property
    def metric_by_gaps(self) -> str:
        """Metric of `cdist` if distances are summed coordinate by coordinate, else "".

        A matrix product gives an error ε for equal rows, which the cusp of a Matérn kernel turns
        into ε^ν, ν < 1.
        """
        if self.name == LAPLACIAN:
            return "cityblock"
        return "sqeuclidean" if self.name == "matern" and self.nu < 1 else ""

    def write(self, a: NDArray[Any], b: NDArray[Any], out: NDArray[Any]) -> None:
        """Write k for all pairs of rows into ``out``, without another array if possible."""
        if self.blocks or not self._is_gaussian(a):
            out[:] = self(a, b)
            return
        multiply(a, b.T, out)
        squares = (np.einsum("ij,ij->i", x, x) / 2 for x in (a, b))
        run_kernel(
            gaussian_values, even_edges(len(out), _SECONDS_PER_VALUE * len(b)), out, *squares
        )

    def _is_gaussian(self, a: NDArray[Any]) -> bool:
        """Return whether a compiled kernel exists for these rows."""
        return self.name == "gaussian" and a.dtype == np.float32

    def _of(self, a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
        if self._is_gaussian(a):
            values = np.empty((len(a), len(b)), a.dtype)
            LandmarkKernel(self.name, self.nu).write(a, b, values)
            return values
        if metric := self.metric_by_gaps:
            distances = cdist(a, b, metric).astype(a.dtype, copy=False)
        else:  # by one matrix product
            distances = multiply(-2 * a, b.T)
            distances += np.einsum("ij,ij->i", a, a)[:, None]
            distances += np.einsum("ij,ij->i", b, b)
            np.maximum(distances, 0, out=distances)
        return kernel_profile(self.name, distances, self.nu)


@dataclass(frozen=True, eq=False, kw_only=True)
class NystroemSpec(ArraySpec):
    """Fitted Nyström features: z(a) = Wᵀ k(L, a).

    Attributes
    ----------
    landmarks : float64, shape (n_features, n_inputs)
        Landmarks L.
    whitening : float64, shape (n_features, n_features)
        Upper triangular matrix W = R⁻¹ with k(L, L) + shift = RᵀR.
    scale : float
        Width σ of the kernel.
    kernel : LandmarkKernel
        Kernel k.

    See Also
    --------
    bagbasis.NystroemFeatures : Kernel features from landmark bags.
    FeatureSpec : Base class of fitted random features.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(0.5, 2.0, 80)
    >>> X = [rng.normal(0, s, (30, 2)) for s in y]
    >>> from bagbasis import MomentsEmbedding, NystroemFeatures
    >>> A = MomentsEmbedding().fit_transform(X)
    >>> spec = NystroemFeatures(n_features=20).fit(A).spec_
    >>> spec.landmarks.shape
    (20, 5)
    """

    landmarks: Floats
    whitening: Floats
    scale: float
    kernel: LandmarkKernel
    array_names = ("landmarks", "whitening")

    @property
    def n_inputs(self) -> int:
        """Length s of an input row."""
        return int(self.landmarks.shape[1])

    @property
    def n_features(self) -> int:
        """Number D of features."""
        return len(self.landmarks)

    @property
    @override
    def plain(self) -> object:
        return (self.scale, self.kernel)

    def cost_in(self, precision: str) -> Cost:
        """Return the cost of features per row, without the array of features."""
        m, itemsize = len(self.landmarks), np.dtype(precision).itemsize
        # for incomplete features: at most a quarter of the whitening
        seconds = m * (2 * self.n_inputs + m / 4) * SECONDS_PER_PRODUCT
        seconds += m * _SECONDS_PER_VALUE
        if self.kernel.metric_by_gaps:
            seconds += m * self.n_inputs * _SECONDS_PER_GAP
        # kernel values of a block, also in float64, and temporary arrays of Matérn kernels
        blocks = 6 * max(_BLOCK_BYTES, 8 * max(self.landmarks.shape))
        held = 2 * itemsize * (self.landmarks.size + self.whitening.size)
        held += 8 * 3 * self.whitening.size  # the factor, and the completed products
        return Cost(
            seconds_per_bag=seconds,
            bytes_per_task=blocks + held,
        )

    def transform(self, embeddings: NDArray[Any], out: NDArray[Any]) -> None:
        """Write Wᵀ k(L, a), shape (n, D), in the dtype of ``out``."""
        self._write(embeddings, out, whole=True)

    @property
    def completion(self) -> Completion:
        """Linear map from the features of `begin` to those of `transform`; applied once to sums."""
        return _split(self)[1]

    def begin(self, embeddings: NDArray[Any], out: NDArray[Any]) -> None:
        """Write the first features, and the residual kernel values of all other landmarks."""
        self._write(embeddings, out, whole=not self.completion)

    def _write(self, embeddings: NDArray[Any], out: NDArray[Any], whole: bool) -> None:
        typed = _typed(self, out.dtype.name)
        first = len(typed.head)
        step = max(1, min(len(out), _BLOCK_BYTES // (8 * max(self.landmarks.shape))))
        # one buffer for all blocks: allocating new pages takes longer than the computation
        buffer = np.empty((step, len(typed.tail)), out.dtype)
        for start in range(0, len(out), step):
            block, rest = out[start : start + step], buffer[: len(out) - start]
            self._write_values(embeddings[start : start + step], typed, block)
            block[:, :first] = multiply(block[:, :first], typed.head)
            multiply(block[:, :first], typed.across, rest)
            if not whole:
                block[:, first:] -= rest
                continue
            np.subtract(block[:, first:], rest, out=rest)
            multiply_by_triangle(rest, typed.tail)
            block[:, first:] = rest

    def _write_values(self, rows: NDArray[Any], typed: _Typed, out: NDArray[Any]) -> None:
        """Write k(a, L), shape (n, n_landmarks)."""
        scaled = ((rows - typed.centre) / self.scale).astype(typed.landmarks.dtype)
        np.clip(scaled, -_FARTHEST, _FARTHEST, out=scaled)
        self.kernel.write(scaled, typed.landmarks, out)

    @property
    @override
    def described(self) -> dict[str, Any]:
        blocks = [list(block) for block in self.kernel.blocks]
        return {"kernel": self.kernel.name, "nu": self.kernel.nu, "blocks": blocks}

    @classmethod
    @override
    def from_dict(cls, values: Mapping[str, Any], arrays: Arrays = NO_ARRAYS) -> Self:
        blocks = check_blocks(values["blocks"], values["n_inputs"])
        kernel = LandmarkKernel(values["kernel"], values["nu"], blocks)
        spec = cls(
            landmarks=arrays["landmarks"],
            whitening=arrays["whitening"],
            scale=values["scale"],
            kernel=kernel,
        )
        if spec.to_dict() != values:
            raise ValueError("the landmarks are not those that the description is of")
        return spec


@random_features("nystroem", NystroemSpec)
class NystroemFeatures(RandomFeatures):
    """Features that approximate a kernel between bags by landmark bags (Nyström).

    The features satisfy z(a)ᵀz(b) = k(a, L) (k(L, L) + εI)⁻¹ k(L, b) for landmarks L, which are
    some of the bags.

    ε is 1e-7 of the trace of k(L, L). The features approximate the kernel near the training bags,
    whereas `RandomFourierFeatures` approximate the kernel everywhere. Fewer features therefore
    reach the same error if embeddings are close together or the kernel is smooth. Each feature
    takes more time: n_features additional products per bag.

    Parameters
    ----------
    n_features
        Number of landmarks. Fewer landmarks are used if they explain the kernel of the sampled bags
        up to 1e-7. If there are fewer bags than landmarks, all bags are used, with a warning.
    scale
        Width σ of the kernel. "median" is the median pairwise distance (L1 for the Laplacian
        kernel) of up to 1,024 sampled rows, times ``scale_multiplier``.
    scale_multiplier
        Factor that multiplies the median; not used if scale is a number.
    kernel
        Kernel k: exp(−‖Δ‖₂² / 2σ²), exp(−‖Δ‖₁ / σ), the Matérn kernel with parameter ν and length
        σ, or 1 / (1 + ‖Δ‖₂² / σ²).
    nu
        Parameter ν of the Matérn kernel; not used by any other kernel.
    landmarks
        Method that chooses landmarks among twice as many sampled bags: a randomly pivoted Cholesky
        factorisation of their kernel, or the seeding of k-means++.
    seed
        Seed for drawing the landmarks.

    Attributes
    ----------
    spec_ : NystroemSpec
        The fitted features.

    See Also
    --------
    bagbasis.densities.PrecomputedNystroem : Nyström features of a precomputed kernel matrix.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(0.5, 2.0, 80)
    >>> X = [rng.normal(0, s, (30, 2)) for s in y]
    >>> from bagbasis import MomentsEmbedding, NystroemFeatures
    >>> A = MomentsEmbedding().fit_transform(X)
    >>> NystroemFeatures(n_features=20).fit_transform(A).shape
    (80, 20)
    """

    n_features: Annotated[int, Integer(1)] = 1024
    kernel: Annotated[str, OneOf(*KERNELS_OF_DISTANCES)] = "gaussian"
    nu: Annotated[float, Real(ge=0.5)] = 1.5
    landmarks: Annotated[str, OneOf(*LANDMARK_METHODS)] = "rpcholesky"

    def resolve(
        self,
        n_inputs: int,
        sample: SampleRows,
        blocks: Blocks = (),
        labelled: LabelledSums | None = None,
    ) -> NystroemSpec:
        """Return the spec for rows of R^n_inputs; landmarks are chosen from a sample.

        Raises
        ------
        ParameterError
            If a parameter has a value that is not allowed, or the landmarks do not fit in memory.
        """
        check_parameters(self)
        n_landmarks = self.n_features
        n_sampled = max(MEDIAN_ROWS, SAMPLED_PER_LANDMARK * n_landmarks)
        needed = 8 * n_landmarks * (2 * n_sampled + 4 * n_landmarks)
        check_memory(f"choosing {n_landmarks:,} landmarks", needed, "take fewer features")
        rows = np.asarray(sample(n_sampled), np.float64)
        if n_landmarks > len(rows):
            warn(
                f"n_features is {n_landmarks:,} landmarks, and {len(rows):,} bags were sampled: "
                f"these are all landmarks; n_features={len(rows)} says so without this warning"
            )
            n_landmarks = len(rows)
        kernel = LandmarkKernel(self.kernel, float(self.nu), blocks)
        median = median_l1_distance if self.kernel == LAPLACIAN else median_distance
        scale = self.resolve_scale(lambda n: spread_rows(rows, n), blocks, median=median)
        scaled = (rows - rows.mean(axis=0)) / scale
        chosen = self._chosen(scaled, kernel, n_landmarks)
        return NystroemSpec(
            landmarks=rows[chosen],
            whitening=_whitening(kernel, scaled[chosen]),
            scale=scale,
            kernel=kernel,
        )

    def get_feature_names_out(self, input_features: object = None) -> NDArray[Any]:
        """Return the names nystroem0 …."""
        check_is_fitted(self)
        names = [f"nystroem{j}" for j in range(self.spec_.n_features)]
        return np.array(names, dtype=object)

    def _chosen(self, rows: Floats, kernel: LandmarkKernel, n_landmarks: int) -> Integers:
        """Return the positions of the landmarks among rows in units of the width."""
        if self.landmarks == "kmeans++":
            return choose_spread(rows, n_landmarks, self.seed)
        parts = kernel.split(rows)
        return choose_by_cholesky(
            lambda a, b: kernel.of_parts([p[a] for p in parts], [p[b] for p in parts]),
            *(len(rows), n_landmarks, self.seed, _SHIFT),
        )


def _whitening(kernel: LandmarkKernel, landmarks: Floats) -> Floats:
    """Return the inverse Cholesky factor of the kernel of landmarks in units of the width."""
    shifted = kernel(landmarks, landmarks)
    shifted[np.diag_indices(len(shifted))] += _SHIFT * len(shifted)
    # the transposed array has the memory order of LAPACK, which then works in place
    factor = cholesky(shifted.T, lower=True, overwrite_a=True, check_finite=False)
    whitening: Floats = lapack.dtrtri(factor, lower=1, overwrite_c=1)[0].T
    return whitening


@lru_cache(maxsize=4)
def _split(spec: NystroemSpec) -> tuple[Floats, Completion]:
    """Return R and the completion of incomplete features."""
    factor: Floats = lapack.dtrtri(spec.whitening.T, lower=1)[0].T
    d = len(factor)
    for first in (d // share for share in FIRST_FRACTIONS if d >= MIN_DEFERRED):
        rest, inverse = factor[first:, first:], spec.whitening[first:, first:]
        columns = rest[:, spread_rows(np.arange(len(rest)), PROBES)]
        if np.mean((rest.T @ columns) ** 2) * _largest_eigenvalue(inverse) <= MAX_SQUARE:
            return factor, Completion(first, np.asfortranarray(rest))
    return factor, COMPLETE


def _largest_eigenvalue(root: Floats) -> float:
    """Return a lower bound close to the largest eigenvalue of root rootᵀ."""
    vector = root[:, np.argmax(np.einsum("ij,ij->j", root, root))]
    norm = 1.0
    for _ in range(POWER_STEPS):
        vector = root @ ((vector / np.linalg.norm(vector)) @ root)
        norm = float(np.linalg.norm(vector))
    return norm


class _Typed(NamedTuple):
    """Arrays for `transform` in one dtype; W and R are split after the first features."""

    centre: Floats  # mean of the landmarks; subtracting it reduces rounding errors
    landmarks: NDArray[Any]  # landmarks minus the centre, in units of the width
    head: NDArray[Any]  # part of W for the first features
    across: NDArray[Any]  # part of R from the first features to all other features
    tail: NDArray[Any]  # part of W for all other features


@lru_cache(maxsize=4)
def _typed(spec: NystroemSpec, dtype: str) -> _Typed:
    centre = spec.landmarks.mean(axis=0)
    scaled = ((spec.landmarks - centre) / spec.scale).astype(dtype)
    factor, completion = _split(spec)
    first = completion.first or len(factor) // 2
    parts = spec.whitening[:first, :first], factor[:first, first:], spec.whitening[first:, first:]
    typed = _Typed(centre, scaled, *(np.ascontiguousarray(part, dtype) for part in parts))
    for array in typed:
        array.setflags(write=False)
    return typed
