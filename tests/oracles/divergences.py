"""Divergences, kernel repairs and Nyström blocks, slow and by the definitions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Bag = NDArray[Any]


def distances(points: Bag, others: Bag) -> NDArray[np.float64]:
    """All distances, in double precision."""
    gaps = points.astype(np.float64)[:, None, :] - others.astype(np.float64)[None, :, :]
    return np.sqrt((gaps**2).sum(axis=-1))


def sorted_own(x: Bag) -> NDArray[np.float64]:
    """Distances of each point to the others of its bag, ascending, shape (n, n − 1)."""
    table = distances(x, x)
    return np.array([np.sort(np.delete(row, i)) for i, row in enumerate(table)])


def sorted_cross(x: Bag, y: Bag) -> NDArray[np.float64]:
    return np.sort(distances(x, y), axis=1)


def ball(d: int) -> float:
    return math.pi ** (d / 2) / math.gamma(d / 2 + 1)


def kl(x: Bag, y: Bag, k: int) -> float:
    (n, d), m = x.shape, len(y)
    rho, nu = sorted_own(x)[:, k - 1], sorted_cross(x, y)[:, k - 1]
    return float(d / n * sum(math.log(b / a) for a, b in zip(rho, nu, strict=True))) + math.log(
        m / (n - 1)
    )


def alpha_integral(x: Bag, y: Bag, k: int, alpha: float) -> float:
    (n, d), m = x.shape, len(y)
    rho, nu = sorted_own(x)[:, k - 1], sorted_cross(x, y)[:, k - 1]
    b = math.gamma(k) ** 2 / (math.gamma(k + 1 - alpha) * math.gamma(k - 1 + alpha))
    return float(
        b
        * ((n - 1) / m) ** (1 - alpha)
        * np.mean([(r / v) ** (d * (1 - alpha)) for r, v in zip(rho, nu, strict=True)])
    )


def l2(x: Bag, y: Bag, k: int) -> float:
    d = x.shape[1]

    def inner(table: NDArray[np.float64], size: int) -> float:
        return float(np.mean([(k - 1) / (size * ball(d) * row[k - 1] ** d) for row in table]))

    crossed = inner(sorted_cross(x, y), len(y)) + inner(sorted_cross(y, x), len(x))
    return inner(sorted_own(x), len(x) - 1) + inner(sorted_own(y), len(y) - 1) - crossed


def js(x: Bag, y: Bag, k: int) -> float:
    """Counts in the ball that reaches the k-th own neighbour, or the k·(n − 1)/m-th if that is
    farther, with the correction for unequal sizes written out."""

    def gap(x: Bag, y: Bag) -> float:
        n, m = len(x), len(y)
        w, own, cross = (n - 1) / m, sorted_own(x), sorted_cross(x, y)
        terms = []
        for a, b in zip(own, cross, strict=True):
            radius = a[min(n - 1, max(k, math.ceil(k * w))) - 1] * (1 + 1e-10)
            inside, others = int((a <= radius).sum()), int((b <= radius).sum())
            x = others / inside
            terms.append(
                psi(inside + others)
                - psi(inside)
                + math.log((1 + w * x) / (1 + x))
                + (w**2 * x * (1 + x) / (1 + w * x) ** 2 - x / (1 + x)) / (2 * inside)
            )
        return float(np.mean(terms))

    def psi(count: int) -> float:
        return sum(1 / i for i in range(1, count)) - 0.5772156649015329

    return math.log(2) - (gap(x, y) + gap(y, x)) / 2


def mmd(x: Bag, y: Bag, bandwidth: float, unbiased: bool = False) -> float:
    def kernel(a: Bag, b: Bag) -> NDArray[np.float64]:
        return np.exp(-(distances(a, b) ** 2) / (2 * bandwidth**2))

    def own(a: Bag) -> float:
        table = kernel(a, a)
        if not unbiased:
            return float(table.mean())
        return float(table[~np.eye(len(a), dtype=bool)].mean())

    return own(x) + own(y) - 2 * float(kernel(x, y).mean())


PAIRWISE: dict[str, Callable[[Bag, Bag, int], float]] = {
    "kl": kl,
    "symmetric_kl": lambda x, y, k: kl(x, y, k) + kl(y, x, k),
    "renyi": lambda x, y, k: math.log(alpha_integral(x, y, k, 0.8)) / (0.8 - 1),
    "hellinger": lambda x, y, k: (
        1 - (alpha_integral(x, y, k, 0.5) + alpha_integral(y, x, k, 0.5)) / 2
    ),
    "l2": l2,
    "js": js,
}


def matrix_by_loop(
    X: Sequence[Bag], Y: Sequence[Bag], pairwise: Callable[[Bag, Bag], float]
) -> NDArray[np.float64]:
    """Every pair on its own; 0 where the two bags are the same points."""
    return np.array([[0.0 if np.array_equal(x, y) else pairwise(x, y) for y in Y] for x in X])


SPECTRA: dict[str, Callable[[NDArray], NDArray]] = {
    "clip": lambda values: np.maximum(values, 0),
    "flip": np.abs,
    "square": np.square,
    "shift": lambda values: values + max(0.0, -values.min()),
}


def repaired(K: NDArray, method: str) -> NDArray[np.float64]:
    """The eigenvalues replaced, and the matrix put together again (000, §2.4.1)."""
    values, vectors = np.linalg.eigh(K)
    return vectors @ np.diag(SPECTRA[method](values)) @ vectors.T


def linear_transform(K: NDArray, method: str) -> NDArray[np.float64]:
    """P with Π(K) = P K, a non-singular K (000, eq. 2.4)."""
    values, vectors = np.linalg.eigh(K)
    signs = {"flip": np.sign(values), "clip": (values >= 0).astype(float), "square": values}
    return vectors @ np.diag(signs[method]) @ vectors.T


def nystroem_blocks(A: NDArray, B: NDArray, method: str) -> NDArray[np.float64]:
    """The approximation of the kernel of anchors and others; B has anchors in rows (000, §2.4.2).

    "standard": [A, A A⁺ B; Bᵀ A⁺ A, Bᵀ A⁺ B]. Otherwise that of Π(A) and P B.
    """
    if method != "standard":
        B = linear_transform(A, method) @ B
        A = repaired(A, method)
    inverse = np.linalg.pinv(A, rcond=1e-10, hermitian=True)
    return np.block([[A, A @ inverse @ B], [B.T @ inverse @ A, B.T @ inverse @ B]])


def indefinite(rng: np.random.Generator, values: Sequence[float]) -> NDArray[np.float64]:
    """A symmetric matrix with these eigenvalues."""
    vectors = np.linalg.qr(rng.standard_normal((len(values), len(values))))[0]
    matrix = vectors @ np.diag(values) @ vectors.T
    return (matrix + matrix.T) / 2
