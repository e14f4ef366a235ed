"""`RandomFourierFeatures`: random sines and cosines that approximate a Gaussian kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import lru_cache
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import DTypeLike, NDArray
from sklearn.utils.validation import check_is_fitted

from ...core import Integer, OneOf, RandomSeed, check_parameters, keep_checked
from ...core.arrays import Floats
from ...core.errors import ParameterError
from ...execution.costs import SECONDS_PER_PRODUCT, Cost
from ...execution.pool import even_edges, run_kernel
from ...execution.products import multiply
from .base import (
    BLOCKS,
    Blocks,
    FeatureSpec,
    KernelWidth,
    LabelledSums,
    RandomFeatures,
    SampleRows,
    check_blocks,
)
from .frequencies import FREQUENCIES_PER_BLOCK, draw_frequencies, draw_hadamard, hadamard_order
from .kernels.fourier_kernels import sine_cosine
from .kernels.hadamard_kernels import structured_products
from .registered import random_features

_SECONDS_PER_SINE = 2e-9  # for a sine and its cosine
_SECONDS_PER_SUM = 3e-9  # for all steps of a value of a Hadamard product
STRUCTURED_INPUTS = 64  # with fewer inputs, Hadamard products are far from Gaussian
BLOCK_KEYS = 2**63  # first key for seeds of blocks, larger than keys of frequencies


Waves = Annotated[int, Integer(2, even=True)]
Structure = Annotated[str, OneOf("dense", "hadamard")]


@dataclass(frozen=True)
class FourierSpec(FeatureSpec):
    """Fitted random Fourier features; see `RandomFourierFeatures` for the fields.

    Frequencies are drawn from the seed when they are needed; they are not saved or sent. With
    ``blocks``, the features approximate a sum of kernels. Each frequency then uses the inputs of
    one block, and the weight of a block is its fraction of the frequencies.

    See Also
    --------
    bagbasis.RandomFourierFeatures : Random Fourier features of embeddings.
    FeatureSpec : Base class of fitted random features.

    Examples
    --------
    >>> from bagbasis.embeddings import FourierSpec
    >>> FourierSpec(n_inputs=5, n_features=64, scale=1.0).n_features
    64
    """

    n_inputs: Annotated[int, Integer(1)]
    n_features: Waves
    _: KW_ONLY
    scale: KernelWidth
    seed: RandomSeed = 0
    orthogonal: bool = False
    structure: Structure = "dense"
    blocks: Annotated[Blocks, BLOCKS] = ()
    OMITTED: ClassVar = ("structure", "blocks")

    def __post_init__(self) -> None:
        """Check the fields."""
        keep_checked(self)
        _check_structure(self.structure, self.orthogonal)
        blocks = check_blocks(self.blocks, self.n_inputs)
        object.__setattr__(self, "blocks", blocks)
        if self.n_features < 2 * len(blocks):
            least = f"at least {2 * len(blocks)} for a sum of {len(blocks)} kernels"
            raise ParameterError(f"n_features is {self.n_features}; expected {least}")

    def frequencies(self) -> Floats:
        """Return the frequencies ω_j as columns, shape (n_inputs, n_features / 2)."""
        if self.structure == "dense" and not self.blocks:
            drawn: Floats = _drawn(self, "float64")[0]
            return drawn
        out = np.empty((self.n_inputs, self.n_features // 2))
        self._phases(np.eye(self.n_inputs), out)
        return out

    def cost_in(self, precision: str) -> Cost:
        """Return the cost of features per row, without the array of features."""
        return Cost(
            seconds_per_bag=self.n_features * self.n_inputs * SECONDS_PER_PRODUCT,
            bytes_per_bag=4 * self.n_features,  # phases of the sines
            bytes_per_task=frequency_bytes(self, precision),
        )

    def transform(self, embeddings: NDArray[Any], out: NDArray[Any]) -> None:
        """Write √(2/D) [sin(ωᵀa), cos(ωᵀa)], shape (n, D), in the dtype of ``out``."""
        half = self.n_features // 2
        self._phases(embeddings.astype(out.dtype, copy=False), out[:, :half])
        complete_sines(out)

    def _phases(self, rows: NDArray[Any], out: NDArray[Any]) -> None:
        """Write ωᵀa, shape (n, D / 2); ``rows`` and ``out`` have the same dtype."""
        drawn = _drawn(self, rows.dtype.name)
        if not self.blocks:
            _multiply(rows, drawn[0], out)
        for (_, inputs, places), frequencies in zip(
            _split_blocks(self), drawn, strict=bool(self.blocks)
        ):
            _multiply(np.ascontiguousarray(rows[:, inputs]), frequencies, out[:, places])


@random_features("fourier", FourierSpec)
class RandomFourierFeatures(RandomFeatures):
    """Random Fourier features, which approximate a Gaussian kernel between embeddings.

    The features z satisfy z(a)ᵀz(b) ≈ exp(−‖a − b‖² / 2σ²) (Oliva 2018, §3.2.2).

    The features are sines and cosines of n_features / 2 Gaussian frequencies, so that ‖z‖ = 1
    exactly. Features with random phases (Oliva 2018, eq. 3.9) have a larger variance (Sutherland
    2016, §3.2).

    Parameters
    ----------
    n_features
        Number D of features.
    scale
        Width σ of the kernel. "median" is the median pairwise distance of up to 1,024 rows of the
        data in `fit`, times ``scale_multiplier``.
    scale_multiplier
        Factor that multiplies the median; not used if scale is a number.
    orthogonal
        Whether frequencies are orthogonal within blocks of n_inputs. Their lengths are those of
        Gaussian frequencies. This reduces the variance further for smooth kernels.
    structure
        Structure of the frequencies. With "hadamard", frequencies are products of three Hadamard
        matrices with random signs (Yu et al. 2016), with the lengths of Gaussian frequencies. They
        are orthogonal within blocks. D features then take n_inputs log D operations instead of
        n_inputs D. This is faster with more than about 200 inputs.
    seed
        Seed for drawing the frequencies. Each block of frequencies depends on the seed and the
        block number only, so that all machines draw the same frequencies.

    Attributes
    ----------
    spec_ : FourierSpec
        The fitted random features.

    See Also
    --------
    NystroemFeatures : Kernel features from landmark bags.
    LearnedFourierFeatures : Random features whose frequencies are learned.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(0.5, 2.0, 80)
    >>> X = [rng.normal(0, s, (30, 2)) for s in y]
    >>> from bagbasis import MomentsEmbedding, RandomFourierFeatures
    >>> A = MomentsEmbedding().fit_transform(X)
    >>> RandomFourierFeatures(n_features=256).fit_transform(A).shape
    (80, 256)
    """

    n_features: Waves = 2048
    orthogonal: bool = False
    structure: Structure = "dense"

    def resolve(
        self,
        n_inputs: int,
        sample: SampleRows,
        blocks: Blocks = (),
        labelled: LabelledSums | None = None,
    ) -> FourierSpec:
        """Return the spec for rows of R^n_inputs; reads a sample only for "median"."""
        check_parameters(self)
        _check_structure(self.structure, self.orthogonal)
        return FourierSpec(
            n_inputs,
            self.n_features,
            scale=self.resolve_scale(sample, blocks),
            seed=self.seed,
            orthogonal=self.orthogonal,
            structure=self.structure,
            blocks=blocks,
        )

    def get_feature_names_out(self, input_features: object = None) -> NDArray[Any]:
        """Return the names sin0 … and cos0 …."""
        return name_sines(self)


def name_sines(features: RandomFeatures) -> NDArray[Any]:
    """Return the names of fitted sine and cosine features."""
    check_is_fitted(features)
    half = features.spec_.n_features // 2
    return np.array([f"{f}{j}" for f in ("sin", "cos") for j in range(half)], dtype=object)


def complete_sines(out: NDArray[Any]) -> None:
    """Replace phases, the first half of the columns, by √(2/D) [sin, cos] of them."""
    half, amplitude = out.shape[1] // 2, np.sqrt(2.0 / out.shape[1])
    if out.dtype == np.float32:
        edges = even_edges(len(out), _SECONDS_PER_SINE * half)
        run_kernel(sine_cosine, edges, out, np.float32(amplitude))
    else:
        phases = out[:, :half]
        np.cos(phases, out=out[:, half:])
        np.sin(phases, out=phases)
        out *= amplitude


def frequency_bytes(spec: FourierSpec, dtype: DTypeLike) -> int:
    """Return the bytes of the frequencies in this dtype, including memory for drawing them."""
    if spec.blocks:
        return sum(frequency_bytes(part, dtype) for part, _, _ in _split_blocks(spec))
    s, half = spec.n_inputs, spec.n_features // 2
    if spec.structure == "hadamard":
        return 4 * np.dtype(dtype).itemsize * (half + hadamard_order(s))
    drawn = 8 * s * (6 * s if spec.orthogonal else 3 * FREQUENCIES_PER_BLOCK)
    return np.dtype(dtype).itemsize * s * half + drawn


@lru_cache(maxsize=4)
def _split_blocks(spec: FourierSpec) -> list[tuple[FourierSpec, slice, slice]]:
    """Return the features, the inputs and the positions of the frequencies of each block.

    The inputs of a block of weight w are multiplied by √w in `EmbeddingUnion`, so that the width of
    the block is √w σ.
    """
    parts = []
    first, ends = 0, _share_out(spec.n_features // 2, [w for _, w in spec.blocks])
    for i, (n, weight) in enumerate(spec.blocks):
        start, stop = (ends[i - 1] if i else 0), ends[i]
        key = np.array([spec.seed, BLOCK_KEYS + i], np.uint64)
        seed = int(np.random.Philox(key=key).random_raw())
        scale, count = spec.scale * weight**0.5, 2 * (stop - start)
        fast = spec.structure == "hadamard" and n >= STRUCTURED_INPUTS
        kind = "hadamard" if fast else "dense"
        orthogonal = spec.orthogonal or (spec.structure == "hadamard" and not fast)
        part = FourierSpec(n, count, scale=scale, seed=seed, orthogonal=orthogonal, structure=kind)
        parts.append((part, slice(first, first + n), slice(start, stop)))
        first += n
    return parts


def _share_out(n: int, weights: Sequence[float]) -> list[int]:
    """Return the ends of consecutive parts of n in proportion to weights, each at least 1."""
    if not weights:
        return []
    spare = np.cumsum(weights) / np.sum(weights) * (n - len(weights))
    return [round(end) + i + 1 for i, end in enumerate(spare.tolist())]


@lru_cache(maxsize=4)
def _drawn(spec: FourierSpec, dtype: str) -> list[Any]:
    """Return the frequencies of each block, or of all inputs if there are no blocks."""
    return [_draw(part, dtype) for part, _, _ in _split_blocks(spec)] or [_draw(spec, dtype)]


def _draw(spec: FourierSpec, dtype: str) -> NDArray[Any] | tuple[NDArray[Any], NDArray[Any]]:
    n_frequencies = spec.n_features // 2
    if spec.structure == "hadamard":
        return draw_hadamard(spec.n_inputs, n_frequencies, spec.scale, spec.seed, dtype)
    drawn = draw_frequencies(
        "gaussian",
        spec.n_inputs,
        n_frequencies,
        spec.scale,
        spec.seed,
        orthogonal=spec.orthogonal,
        dtype=dtype,
    )
    drawn.setflags(write=False)
    return drawn


def _multiply(rows: NDArray[Any], drawn: Any, out: NDArray[Any]) -> None:  # noqa: ANN401
    if not isinstance(drawn, tuple):
        multiply(rows, drawn, out)
        return
    edges = even_edges(len(rows), _SECONDS_PER_SUM * drawn[0].size)
    run_kernel(structured_products, edges, np.ascontiguousarray(rows), *drawn, out)


def _check_structure(structure: str, orthogonal: bool) -> None:
    if structure == "hadamard" and orthogonal:
        raise ParameterError("structure='hadamard' is orthogonal already: leave orthogonal out")
