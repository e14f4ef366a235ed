"""Sources in dependent groups, mixed, and how well groups were separated."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bagbasis.core.arrays import Floats


def mixed_sources(sizes: Sequence[int], n: int, *, seed: int) -> tuple[Floats, Floats]:
    """Return mixtures (n, d) of groups of sources, and the mixing matrix (d, d).

    A group is a direction drawn evenly, times a heavy-tailed length that its coordinates share:
    uncorrelated and dependent (spherical, as in the sufficient conditions of Szabó et al. 2012). A
    group of one is Laplacian.
    """
    rng = np.random.default_rng(seed)
    sources = [
        rng.standard_normal((n, size)) * (rng.exponential(size=(n, 1)) + 0.05) for size in sizes
    ]
    x = np.concatenate(sources, axis=1)
    x /= x.std(axis=0)
    d = x.shape[1]
    mixing = np.linalg.qr(rng.standard_normal((d, d)))[0] * rng.uniform(0.5, 2, d)
    return x @ mixing.T, mixing


def amari(product: Floats, sizes: Sequence[int]) -> float:
    """Return the Amari index of W A by groups: 0 where each group found is one of the sources'.

    Largest of the norms of blocks; from 0 to 1.
    """
    ends = np.cumsum(sizes)
    cuts = [slice(end - size, end) for end, size in zip(ends.tolist(), sizes, strict=True)]
    norms = np.array([[np.linalg.norm(product[r, c]) for c in cuts] for r in cuts])
    total = 0.0
    for matrix in (norms, norms.T):
        total += float((matrix.sum(axis=1) / matrix.max(axis=1) - 1).sum())
    k = len(cuts)
    return total / (2 * k * (k - 1))
