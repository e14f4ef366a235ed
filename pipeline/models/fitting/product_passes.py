"""The passes of conjugate gradients over the rows: moments once, then products with directions."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from ...core.arrays import Floats, Integers
from ...core.sums import Sums
from ...data.labelled.splits import Split
from ...execution.costs import SECONDS_PER_PRODUCT, Cost
from ...execution.pool import even_edges, run_kernel
from ...execution.products import multiply
from ..ridge.moments import MomentsBuilder, RidgeMoments
from ..ridge.product_kernels import N_STRIPES, row_products
from ..ridge.summary import Summary
from .accumulate import FitStatistics
from .feature_rows import ROW_BLOCK_BYTES, FeatureRows, RowBlock
from .plan import FitPlan

# Sizes of the rows that go through both products of a step: cached for one column, and for many of
# them enough that products of matrices are fast.
SLICE_BYTES, WIDE_BYTES, _WIDE = 2**20, 2**24, 4
_SECONDS_PER_NUMBER = 3e-10  # of a row that is multiplied twice: memory is read


def block_rows(n_features: int, precision: str) -> int:
    """Return how many rows of features are in memory at a time, in addition to those kept."""
    return max(64, ROW_BLOCK_BYTES // (np.dtype(precision).itemsize * n_features))


def product_cost(plan: FitPlan, rank: int, columns: int) -> Cost:
    """Return the cost of a pass with so many sampled embeddings and directions."""
    d, itemsize = plan.features.n_features, np.dtype(plan.precision).itemsize
    block = block_rows(d, plan.precision) * itemsize * d
    vectors = 8 * d * columns * 4
    own = Cost(
        seconds_per_bag=4 * columns * d * SECONDS_PER_PRODUCT,
        bytes_per_task=2 * block + vectors + 8 * rank * plan.features.n_embedded,
    )
    return plan.features.cost_in(plan.precision) + own


@dataclass(frozen=True)
class FirstPass(Sums):
    """What the first pass leaves.

    Attributes
    ----------
    statistics : FitStatistics
        Statistics that were summed by `RidgeMoments`.
    sample : array, shape (m, s)
        Embeddings of sampled bags that are fitted.
    """

    ROWS: ClassVar[tuple[str, ...]] = ("sample",)
    statistics: FitStatistics
    sample: NDArray[Any]

    def thinned(self, rank: int) -> FirstPass:
        """Return the same with up to ``rank`` evenly spread rows of the sample."""
        rows = np.linspace(0, len(self.sample) - 1, min(rank, len(self.sample)))
        return replace(self, sample=self.sample[rows.astype(np.int64)])

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return everything as arrays by name."""
        out = {"sample": self.sample}
        for name, value in vars(self.statistics).items():
            if isinstance(value, RidgeMoments):
                own = {key: item for key, item in vars(value).items() if item is not None}
                out |= {f"{name}.{key}": np.asarray(item) for key, item in own.items()}
            elif value is not None:
                out[name] = np.asarray(value)
        return out

    @classmethod
    def of(cls, arrays: dict[str, NDArray[Any]]) -> FirstPass:
        """Return what had these `arrays`."""
        values: dict[str, Any] = {}
        for name in (declared.name for declared in fields(FitStatistics)):
            if name in arrays:
                values[name] = int(arrays[name])
                continue
            prefix = f"{name}."
            parts: dict[str, Any] = {
                key.removeprefix(prefix): array
                for key, array in arrays.items()
                if key.startswith(prefix)
            }
            values[name] = RidgeMoments(**{**parts, "n": int(parts["n"])}) if parts else None
        return cls(FitStatistics(**values), arrays["sample"])


class FirstSums:
    """Collects the `FirstPass` of one task."""

    def __init__(self, rows: FeatureRows, sampled: Split) -> None:
        self._features, self._sampled = rows.features, sampled
        sizes = (rows.features.n_features, rows.outcome.n_targets)
        self._train = MomentsBuilder(*sizes)
        self._held = MomentsBuilder(*sizes) if rows.validation else None
        self._buffer = _buffer(rows)
        self._counts = np.zeros(5, np.int64)
        self._sample = [np.empty((0, rows.features.n_embedded), rows.precision)]

    def add(self, block: RowBlock) -> None:
        """Count the rows of a block."""
        self._counts += block.counts
        if not len(block):
            return
        z, n = block.features(self._features, self._buffer), block.n_fitted
        w = block.weights
        self._train.add(z[:n], block.y[:n], None if w is None else w[:n])
        if self._held is not None:
            self._held.add(z[n:], block.y[n:], None if w is None else w[n:])
        self._sample.append(block.embeddings[:n][self._sampled.of(block.index[:n])])

    def finish(self) -> FirstPass:
        """Return what all blocks leave."""
        by = self._features.completion
        held = None if self._held is None else self._held.finish().completed(by)
        parts = cast(Summary, self._train.finish().completed(by)), cast(Summary, held)
        counts = (int(count) for count in self._counts)
        return FirstPass(FitStatistics(*parts, *counts), np.concatenate(self._sample))


@dataclass(frozen=True)
class Product:
    """What is multiplied with the rows, which are begun: all coefficients are for those.

    Attributes
    ----------
    directions : array, shape (D, c)
        In the working precision.
    shift : float64, shape (c,)
        Product of each direction with the mean of the rows.
    psi : array, shape (D, c), or None
        Coefficients that are judged on the rows held apart, in the working precision.
    constants : float64, shape (c,)
        Their intercepts.
    exponents : int64, shape (k,)
        Exponents of the targets' units.
    """

    directions: NDArray[Any]
    shift: Floats
    psi: NDArray[Any] | None = None
    constants: Floats | None = None
    exponents: Integers | None = None

    def judging(self, psi: Floats, constants: Floats, exponents: Integers) -> Product:
        """Return the same with coefficients to be judged."""
        typed = psi.astype(self.directions.dtype)
        return replace(self, psi=typed, constants=constants, exponents=exponents)


@dataclass(frozen=True)
class Products(Sums):
    """Vᵀu and Σu of u = W (Z − mean) P over the rows fitted; weighted squares of other errors."""

    products: Floats
    sums: Floats
    squares: Floats


class ProductSums:
    """Collects the `Products` of one task; with ``takes_all`` rows held apart are fitted, too."""

    def __init__(self, rows: FeatureRows, product: Product, takes_all: bool) -> None:
        self._features, self._product, self._takes_all = rows.features, product, takes_all
        self._buffer = _buffer(rows)
        shape = product.directions.shape
        n_bytes = SLICE_BYTES if shape[1] < _WIDE else WIDE_BYTES
        self._slice = max(16, n_bytes // (product.directions.itemsize * shape[0]))
        self._products, self._sums = np.zeros(shape), np.zeros(shape[1])
        self._squares = np.zeros(shape[1])

    def add(self, block: RowBlock) -> None:
        """Count the rows of a block."""
        if not len(block):
            return
        z = block.features(self._features, self._buffer)
        n = len(block) if self._takes_all else block.n_fitted
        product = self._product
        weights = None if block.weights is None else block.weights[:n]
        (self._multiply_one if len(product.shift) == 1 else self._multiply)(z[:n], weights)
        if product.psi is not None and n < len(block):
            y = np.ldexp(block.y[n:], -product.exponents)  # type: ignore[operator]
            y = np.tile(y, product.psi.shape[1] // y.shape[1])
            squares = (y - (multiply(z[n:], product.psi) + product.constants)) ** 2
            if block.weights is not None:
                squares *= block.weights[n:, None]
            self._squares += squares.sum(axis=0)

    def _multiply_one(self, z: NDArray[Any], weights: Floats | None) -> None:
        """Count rows with one direction: by a kernel, as BLAS would read them twice."""
        product, d = self._product, z.shape[1]
        sums, totals = np.zeros((N_STRIPES, d), z.dtype), np.zeros(N_STRIPES)
        direction, shift = np.ascontiguousarray(product.directions[:, 0]), float(product.shift[0])
        edges = even_edges(N_STRIPES, _SECONDS_PER_NUMBER * z.size / N_STRIPES)
        weights = np.empty(0) if weights is None else weights
        run_kernel(row_products, edges, z, weights, direction, shift, sums, totals)
        self._products += sums.sum(axis=0, dtype=np.float64)[:, None]
        self._sums += totals.sum()

    def _multiply(self, z: NDArray[Any], weights: Floats | None) -> None:
        product = self._product
        sums = np.zeros_like(product.directions)
        for start in range(0, len(z), self._slice):
            part = z[start : start + self._slice]
            u = multiply(part, product.directions) - product.shift
            if weights is not None:
                u *= weights[start : start + len(part), None]
            self._sums += u.sum(axis=0)
            sums += multiply(part.T, u.astype(z.dtype))
        self._products += sums

    def finish(self) -> Products:
        """Return those of all blocks."""
        return Products(self._products, self._sums, self._squares)


def _buffer(rows: FeatureRows) -> NDArray[Any]:
    """Return a buffer for a block of features; its pages are taken when they are written."""
    n_features = rows.features.n_features
    return np.empty((block_rows(n_features, rows.precision), n_features), rows.precision)
