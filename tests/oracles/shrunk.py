"""Shrinkage of embeddings by bag size, as plainly as its formulas (Law et al. 2018, §4)."""

from __future__ import annotations

import numpy as np


def variances_of_means(rows, sizes, halves):
    """Return m, A and S of embeddings (n, s), by pairs of rows of random halves and their sizes."""
    squares, weight = 0.0, 0.0
    for (a, n_a), (b, n_b) in halves:
        squares = squares + (a - b) ** 2
        weight += 1 / n_a + 1 / n_b
    within = squares / weight
    mean = sum(rows) / len(rows)
    total = sum((row - mean) ** 2 for row in rows) / (len(rows) - 1)
    noise = sum(within / n for n in sizes) / len(sizes)
    return mean, np.maximum(total - noise, 0), within


def shrink(row, n, mean, between, within):
    """Return the posterior mean and covariance of a row, by whole matrices."""
    A, S = np.diag(between), np.diag(within)
    gain = A @ np.linalg.inv(A + S / n)
    return mean + gain @ (row - mean), A - gain @ A
