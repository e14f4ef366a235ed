"""`RandomFourierFeatures`: the second basis, random sines and cosines of a Gaussian kernel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from ..bags.sampling import MEDIAN_ROWS, median_distance, spread_rows
from ..errors import ParameterError
from ..execution.passes import check_memory
from ..params import check_choice, check_fields, check_integer, check_number, check_seed
from ..sklearn_bases import BaseEstimator, TransformerMixin, validated
from ..threads import KERNELS
from .fourier_kernels import sine_cosine
from .frequencies import (
    FREQUENCIES_PER_BLOCK,
    draw_frequencies,
    draw_hadamard,
    hadamard_order,
)
from .hadamard_kernels import structured_products

FEWER = "take fewer features, or transform fewer rows at a time"
SCALES = (1e-30, 1e30)  # beyond, frequencies times embeddings may leave float32


@dataclass(frozen=True)
class FourierSpec:
    """Random features with everything decided; frequencies are regenerated, never shipped."""

    n_inputs: int
    n_features: int
    scale: float
    seed: int = 0
    orthogonal: bool = False
    structure: str = "dense"

    def __post_init__(self) -> None:
        """Refuse what can not be used, and a scale whose phases float32 does not hold.

        Raises
        ------
        ParameterError
        """
        check_fields(self)
        check_integer("n_inputs", self.n_inputs)
        check_integer("n_features", self.n_features, 2, even=True)
        check_number("scale", self.scale, *SCALES)
        check_seed("seed", self.seed)
        _check_structure(self.structure, self.orthogonal)

    def frequencies(self) -> NDArray[np.float64]:
        """Columns ω_j, shape (n_inputs, n_features / 2); a pure function of the fields."""
        if self.structure == "dense":
            return _typed(self, "float64")
        out = np.empty((self.n_inputs, self.n_features // 2))
        self._phases(np.eye(self.n_inputs), out)
        return out

    def frequency_bytes(self, dtype: DTypeLike) -> int:
        """Return the memory that the frequencies take in this type, and while they are drawn."""
        s, half = self.n_inputs, self.n_features // 2
        if self.structure == "hadamard":
            return 4 * np.dtype(dtype).itemsize * (half + hadamard_order(s))
        drawn = 8 * s * (6 * s if self.orthogonal else 3 * FREQUENCIES_PER_BLOCK)
        return np.dtype(dtype).itemsize * s * half + drawn

    def transform(self, embeddings: NDArray[Any], out: NDArray[Any]) -> None:
        """Write √(2/D) [sin(ωᵀa), cos(ωᵀa)], shape (n, D), in out's dtype."""
        half = self.n_features // 2
        dtype = out.dtype
        self._phases(embeddings.astype(dtype, copy=False), out[:, :half])
        amplitude = np.sqrt(2.0 / self.n_features)
        if dtype == np.float32:
            with KERNELS:
                sine_cosine(out, np.float32(amplitude))
        else:
            phases = out[:, :half]
            np.cos(phases, out=out[:, half:])
            np.sin(phases, out=phases)
            out *= amplitude

    def _phases(self, rows: NDArray[Any], out: NDArray[Any]) -> None:
        """Write ωᵀa, shape (n, D / 2); all of one type."""
        if self.structure == "dense":
            np.matmul(rows, _typed(self, rows.dtype.name), out=out)
            return
        signs, lengths = _structured(self, rows.dtype.name)
        with KERNELS:
            structured_products(np.ascontiguousarray(rows), signs, lengths, out)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-able description; without the structure it is dense."""
        values = asdict(self)
        if self.structure == "dense":
            del values["structure"]
        return values


class RandomFourierFeatures(TransformerMixin, BaseEstimator):
    """Random Fourier features z with z(a)ᵀz(b) ≈ exp(−‖a − b‖² / 2σ²) (004, §3.2.2).

    Paired sines and cosines of n_features / 2 Gaussian frequencies: ‖z‖ = 1 exactly, and less
    variance than the phase form of 004, eq. 3.9 (000, §3.2).

    Parameters
    ----------
    n_features : even int ≥ 2, default 2048
        D, even.
    scale : float from 1e-30 to 1e30, or "median"
        σ. "median": the median pairwise distance of up to 1,024 rows of what `fit` sees,
        times ``scale_multiplier``.
    scale_multiplier : float > 0
        Of the median; not used when scale is a number.
    orthogonal : bool
        Frequencies orthogonal within blocks of n_inputs, with the lengths of Gaussian ones:
        less variance still for smooth kernels.
    structure : {"dense", "hadamard"}
        "hadamard": frequencies are products of three Hadamard matrices with random signs (Yu et
        al. 2016, with the lengths of Gaussian ones), orthogonal within blocks: n_inputs log D in
        place of n_inputs D. It pays from about 200 inputs on.
    seed : int ≥ 0
        Frequencies are those of (seed, block), on any machine and in any order.

    Attributes
    ----------
    spec_ : FourierSpec
    """

    def __init__(
        self,
        n_features: int = 2048,
        scale: float | str = "median",
        scale_multiplier: float = 1.0,
        orthogonal: bool = False,
        seed: int = 0,
        structure: str = "dense",
    ) -> None:
        self.n_features = n_features
        self.scale = scale
        self.scale_multiplier = scale_multiplier
        self.orthogonal = orthogonal
        self.seed = seed
        self.structure = structure

    def fit(self, X: ArrayLike, y: object = None) -> RandomFourierFeatures:
        """Fix σ from the rows of X, shape (n_samples, n_inputs)."""
        rows = validated(self, X, dtype=[np.float32, np.float64])
        self.spec_ = self.resolve(rows.shape[1], lambda: spread_rows(rows, MEDIAN_ROWS))
        return self

    def transform(self, X: ArrayLike) -> NDArray[Any]:
        """Features, shape (n_samples, n_features), in the dtype of X (float32 or float64)."""
        check_is_fitted(self)
        rows = validated(self, X, dtype=[np.float32, np.float64], reset=False)
        row_bytes = rows.itemsize * self.spec_.n_features
        needed = self.spec_.frequency_bytes(rows.dtype) + len(rows) * row_bytes
        check_memory(f"{self.spec_.n_features:,} features of {len(rows):,} rows", needed, FEWER)
        out = np.empty((len(rows), self.spec_.n_features), dtype=rows.dtype)
        self.spec_.transform(rows, out)
        return out

    def resolve(self, n_inputs: int, sample: Callable[[], NDArray[Any]]) -> FourierSpec:
        """Return the spec for rows of R^n_inputs; reads ``sample()`` only for "median"."""
        n_features = check_integer("n_features", self.n_features, 2, even=True)
        scale = check_number("scale", self.scale, *SCALES, other=("median",))
        multiplier = check_number("scale_multiplier", self.scale_multiplier, above=0)
        seed = check_seed("seed", self.seed)
        _check_structure(self.structure, self.orthogonal)
        if isinstance(scale, str):
            scale = multiplier * median_distance(sample())
        return FourierSpec(n_inputs, n_features, scale, seed, self.orthogonal, self.structure)

    def get_feature_names_out(self, input_features: object = None) -> NDArray[Any]:
        """Return the names sin0 … and cos0 …."""
        check_is_fitted(self)
        half = self.spec_.n_features // 2
        return np.array([f"{f}{j}" for f in ("sin", "cos") for j in range(half)], dtype=object)

    def __sklearn_tags__(self) -> Tags:
        """Tell scikit-learn that float32 stays float32."""
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


@lru_cache(maxsize=4)
def _typed(spec: FourierSpec, dtype: str) -> NDArray[Any]:
    drawn = draw_frequencies(
        "gaussian",
        spec.n_inputs,
        spec.n_features // 2,
        spec.scale,
        spec.seed,
        orthogonal=spec.orthogonal,
        dtype=dtype,
    )
    drawn.setflags(write=False)
    return drawn


@lru_cache(maxsize=4)
def _structured(spec: FourierSpec, dtype: str) -> tuple[NDArray[Any], NDArray[Any]]:
    n_frequencies = spec.n_features // 2
    return draw_hadamard(spec.n_inputs, n_frequencies, spec.scale, spec.seed, dtype)


def _check_structure(structure: str, orthogonal: bool) -> None:
    check_choice("structure", structure, ("dense", "hadamard"))
    if structure == "hadamard" and orthogonal:
        raise ParameterError("structure='hadamard' is orthogonal already: leave orthogonal out")
