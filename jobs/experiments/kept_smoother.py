"""`KeptSmoother`: a kernel smoother in memory as lean as numpy has it, for fair timings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline import Bags, KernelSmoother
from pipeline.execution import lane
from pipeline.regression.feature_map import FeatureMap

ROWS_A_BLOCK = 2048  # the exponents of a block and of 256 queries stay in the cache


@dataclass(frozen=True)
class KeptSmoother:
    """Predictions of a `KernelSmoother`, of a store or of bags in memory.

    What that one computes at every call is kept: embeddings relative to their centre, their
    squared norms, and the targets in float32. What is left for N training bags and a batch of
    queries are two matrix products and the exponential.

    Attributes
    ----------
    rows : float32, shape (N, s)
    halves : float32, shape (N,)
        ‖row‖² / 2h².
    targets : float32, shape (N, k)
    """

    features: FeatureMap
    centre: NDArray[Any]
    bandwidth: float
    rows: NDArray[np.float32]
    halves: NDArray[np.float32]
    targets: NDArray[np.float32]

    @classmethod
    def of(cls, smoother: KernelSmoother, n_bags: int | None = None) -> KeptSmoother:
        """Of the first ``n_bags`` bags that it was fitted to; default all."""
        training, h = smoother.training_, smoother.bandwidth_
        embedded, answers = [], []
        with lane():
            for _, embeddings, targets in training.blocks(0, n_bags or training.n_bags):
                embedded.append((embeddings - smoother.centre_).astype(np.float32))
                answers.append(targets.astype(np.float32))
        rows = np.concatenate(embedded)
        halves = (rows**2).sum(axis=1) / np.float32(2 * h**2)
        kept = np.concatenate(answers)
        return cls(smoother.features_, smoother.centre_, h, rows, halves, kept)

    def coefficients(self, bags: Bags) -> NDArray[np.float64]:
        """Σ w y / Σ w, w = exp(−Δ² / 2h²), shape (n_bags, k).

        −Δ² / 2h² up to a term of the query alone, which cancels; relative to the largest so far,
        so that no sum underflows.
        """
        with lane():
            queries = self.features.embed(bags, np.float32)[0] - self.centre
            queries *= np.float32(self.bandwidth**-2)
            top = np.full((len(bags), 1), -np.inf, dtype=np.float32)
            weight, total = np.zeros((len(bags), 1)), np.zeros((len(bags), self.targets.shape[1]))
            for first in range(0, len(self.rows), ROWS_A_BLOCK):
                block = slice(first, first + ROWS_A_BLOCK)
                exponents = queries @ self.rows[block].T
                exponents -= self.halves[block]
                raised = np.maximum(top, exponents.max(axis=1, keepdims=True))
                w = np.exp(np.subtract(exponents, raised, out=exponents), out=exponents)
                earlier = np.exp(top - raised)
                weight = earlier * weight + w.sum(axis=1, keepdims=True)
                total = earlier * total + w @ self.targets[block]
                top = raised
            return total / weight
