"""Measures of dependence and of fit, slow and by their definitions."""

from __future__ import annotations

import itertools
import math

import numpy as np


def gaussian(X, Y, sigma):
    return np.array([[np.exp(-((x - y) @ (x - y)) / (2 * sigma**2)) for y in Y] for x in X])


def distances(X):
    return np.array([[np.sqrt((x - y) @ (x - y)) for y in X] for x in X])


def hsic_b(K, L):
    """The three terms of 003: tr(KL)/n² + K₊₊L₊₊/n⁴ − 2·1ᵀKL1/n³."""
    n = len(K)
    return np.trace(K @ L) / n**2 + K.sum() * L.sum() / n**4 - 2 * (K @ L).sum() / n**3


def hsic_u(K, L):
    """The mean over all quadruples of different rows."""
    n = len(K)
    values = [
        K[i, j] * (L[i, j] + L[q, r] - 2 * L[i, q])
        for i, j, q, r in itertools.permutations(range(n), 4)
    ]
    return float(np.mean(values))


def dcov(X, Y):
    """E‖x−x′‖‖y−y′‖ + E‖x−x′‖E‖y−y′‖ − 2E[E‖x−x′‖E‖y−y′‖]."""
    a, b = distances(X), distances(Y)
    return (a * b).mean() + a.mean() * b.mean() - 2 * (a.mean(axis=1) * b.mean(axis=1)).mean()


def lancaster(K, L, M):
    n = len(K)
    H = np.eye(n) - 1 / n
    return float(((H @ K @ H) * (H @ L @ H) * (H @ M @ H)).sum() / n**2)


def kcca(K, L, kappa):
    """The largest λ of [[0, K̃L̃], [L̃K̃, 0]] z = λ blkdiag((K̃ + κI)², (L̃ + κI)²) z."""
    n = len(K)
    H, zero = np.eye(n) - 1 / n, np.zeros((n, n))
    K, L = H @ K @ H, H @ L @ H
    K2, L2 = (np.linalg.matrix_power(G + kappa * np.eye(n), 2) for G in (K, L))
    left = np.block([[zero, K @ L], [L @ K, zero]])
    right = np.block([[K2, zero], [zero, L2]])
    return float(np.linalg.eigvals(np.linalg.solve(right, left)).real.max())


def nfsic(K, L, ridge):
    """λ̂ of kernel values (J, n), û from all pairs of different rows."""
    J, n = K.shape
    u = np.zeros(J)
    for i, j in itertools.product(range(n), repeat=2):
        u += (K[:, i] * L[:, i] / n) / n
        if i != j:
            u -= K[:, i] * L[:, j] / (n * (n - 1))
    H = np.eye(n) - 1 / n
    gamma = (K @ H) * (L @ H) - u[:, None]
    return float(n * u @ np.linalg.inv(gamma @ gamma.T / n + ridge * np.eye(J)) @ u)


def stein_kernel(x, y, t, s, b, c, sigma):
    """h_p of two points, their slopes t, s and their weights b, c, term by term."""
    k = np.exp(-((x - y) @ (x - y)) / (2 * sigma**2))
    along_x, along_y = -(x - y) / sigma**2 * k, (x - y) / sigma**2 * k
    trace = (len(x) / sigma**2 - (x - y) @ (x - y) / sigma**4) * k
    return t @ s * k + c * t @ along_y + b * s @ along_x + b * c * trace


def fssd(tau):
    n = len(tau)
    pairs = [tau[i] @ tau[j] for i, j in itertools.permutations(range(n), 2)]
    return float(np.sum(pairs) / (n * (n - 1)))


def dhsic(grams):
    """dHSIC, from its three terms by loops over pairs."""
    n = len(grams[0])
    joint = sum(math.prod(K[i, j] for K in grams) for i in range(n) for j in range(n)) / n**2
    apart = math.prod(K.sum() / n**2 for K in grams)
    margins = sum(math.prod(K[i].sum() / n for K in grams) for i in range(n)) / n
    return joint + apart - 2 * margins


def hsic_of_waves(a, b):
    """HSIC_b of the kernels Re Σ_r a_r(x) a_r(x')* of waves (R, n), frequency by frequency."""
    n = a.shape[1]
    H = np.eye(n) - 1 / n
    value = 0.0
    for x, y in zip(a, b, strict=True):
        K, L = (H @ np.outer(z, z.conj()) @ H for z in (x, y))
        value += (K * L).sum().real / n**2
    return value / len(a)


def soft_maximum_of_scores(every, sharpness):
    """log mean exp(s z) / s of each row, of columns in standard deviations about their means."""
    values = []
    for row in every:
        scores = [(v - c.mean()) / c.std() for v, c in zip(row, every.T, strict=True)]
        values.append(math.log(np.mean([math.exp(sharpness * z) for z in scores])) / sharpness)
    return np.array(values)


def stein_gram_of_waves(x, slopes, edges, frequencies):
    """h_p of all pairs from (t + i b ω) e^{iωx}, frequency by frequency."""
    gram = np.zeros((len(x), len(x)))
    for w in frequencies.T:
        feature = (slopes + 1j * edges[:, None] * w) * np.exp(1j * x @ w)[:, None]
        gram += (feature @ feature.conj().T).real
    return gram / frequencies.shape[1]


def off_diagonal_mean(gram, signs=None):
    n = len(gram)
    signs = np.ones(n) if signs is None else signs
    whole = np.outer(signs, signs) * gram
    return float((whole.sum() - np.trace(whole)) / (n * (n - 1)))
