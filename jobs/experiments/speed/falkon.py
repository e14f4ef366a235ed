"""Kernel ridge regression on Nyström centres by preconditioned conjugate gradients, as FALKON.

A. Rudi, L. Carratino, L. Rosasco, *FALKON: An Optimal Large Scale Kernel Method* (2017), here
called Falkon 2017; the authors' package is not on PyPI.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular
from scipy.sparse.linalg import LinearOperator, cg
from threadpoolctl import threadpool_limits

from bagbasis.core.arrays import Floats
from bagbasis.execution.worker_threads import worker_cores

FALKON_ROWS = 2048  # of kernel values
KEPT_BYTES = 2**31  # of kernel values: with more they are computed anew in each iteration
_CONSTANT = 1.0  # constant in the kernel: an intercept, whose penalty does not matter
_JITTER = 1e-13  # per centre, on the diagonal of their kernel before its decomposition
CONVERGED = 1e-14  # relative residual: rounding


@dataclass(frozen=True)
class FalkonModel:
    """Kernel functions of centres, 1 + exp(−γ‖a − b‖²)."""

    centres: NDArray[Any]
    coef: Floats
    intercept: float
    gamma: float

    def predict(self, X: NDArray[Any]) -> Floats:
        parts = (X[i : i + FALKON_ROWS] for i in range(0, len(X), FALKON_ROWS))
        values = [falkon_kernel(part, self.centres, self.gamma) @ self.coef for part in parts]
        return np.concatenate(values) + self.intercept


def fit_falkon(
    X: NDArray[Any], y: Floats, n_centres: int, gamma: float, alpha: float, n_iterations: int,
    seed: int,
) -> FalkonModel:  # fmt: skip
    """Minimise ‖y − f‖² + α‖f‖² over combinations f of M centres' kernels (Falkon 2017, Alg. 1).

    Kernel values are computed in the dtype of X, the preconditioner in double; α is λ n of the
    algorithm, in the units of `KernelRidge`. The mean of y becomes the intercept.
    """
    n = len(X)
    mean = float(y.mean())
    chosen = np.random.default_rng(seed).choice(n, min(n, n_centres), replace=False)
    centres = np.ascontiguousarray(X[np.sort(chosen)])
    penalty = alpha / n
    T, A = preconditioner(centres, gamma, penalty)
    with NormalProducts(X, centres, gamma) as products:

        def normal(u: Floats) -> Floats:
            inner = solve_triangular(A, u)
            outer = products(solve_triangular(T, inner), None) / n
            return _transposed(A, _transposed(T, outer) + penalty * inner)

        right = _transposed(A, _transposed(T, products(None, y - mean) / n))
        operator = LinearOperator((len(centres),) * 2, matvec=normal, dtype=np.float64)
        solution, _ = cg(operator, right, rtol=CONVERGED, maxiter=n_iterations)
    coef = solve_triangular(T, solve_triangular(A, solution))
    return FalkonModel(centres, coef, mean, gamma)


def preconditioner(centres: NDArray[Any], gamma: float, penalty: float) -> tuple[Floats, Floats]:
    """Upper Cholesky factors T of the centres' kernel, and A of T Tᵀ / M + λ (Falkon 2017, §3)."""
    m = len(centres)
    doubles = centres.astype(np.float64)
    T = cholesky(falkon_kernel(doubles, doubles, gamma) + _JITTER * m * np.eye(m))
    return T, cholesky(T @ T.T / m + penalty * np.eye(m))


def falkon_kernel(X: NDArray[Any], centres: NDArray[Any], gamma: float) -> NDArray[Any]:
    """1 + exp(−γ‖x − c‖²), shape (n, M), in the dtype of both: one product, one exponential."""
    values: NDArray[Any] = X @ (2 * gamma * centres).T
    values -= gamma * np.einsum("ij,ij->i", X, X)[:, None]
    values -= gamma * np.einsum("ij,ij->i", centres, centres)
    np.minimum(values, 0, out=values)
    np.exp(values, out=values)
    values += _CONSTANT
    return values


class NormalProducts:
    """Kᵀ(K u + v) for the kernel K of rows with centres, by blocks of rows on all cores.

    K is kept if it has at most `KEPT_BYTES`. A context manager: within it BLAS has one thread, for
    each core has blocks of its own.
    """

    def __init__(self, X: NDArray[Any], centres: NDArray[Any], gamma: float) -> None:
        self._X, self._centres, self._gamma = X, centres, gamma
        self._starts = range(0, len(X), FALKON_ROWS)
        self._keeps = len(X) * len(centres) * X.itemsize <= KEPT_BYTES
        self._kept: dict[int, NDArray[Any]] = {}

    def __enter__(self) -> NormalProducts:
        self._limits = threadpool_limits(1)
        self._pool = ThreadPoolExecutor(worker_cores())
        return self

    def __exit__(self, *error: object) -> None:
        self._pool.shutdown()
        self._limits.restore_original_limits()

    def __call__(self, u: Floats | None, v: Floats | None) -> Floats:
        """Return the products, shape (M,); None stands for zeros."""

        def part(start: int) -> Floats:
            values = self._values(start)
            sums = np.zeros(len(values), values.dtype)
            if u is not None:
                sums += values @ u.astype(values.dtype)
            if v is not None:
                sums += v[start : start + FALKON_ROWS].astype(values.dtype)
            return (sums @ values).astype(np.float64)

        return np.sum(list(self._pool.map(part, self._starts)), axis=0)

    def _values(self, start: int) -> NDArray[Any]:
        if start in self._kept:
            return self._kept[start]
        values = falkon_kernel(self._X[start : start + FALKON_ROWS], self._centres, self._gamma)
        if self._keeps:
            self._kept[start] = values
        return values


def _transposed(factor: Floats, right: Floats) -> Floats:
    return solve_triangular(factor, right, trans="T")
