"""Sequences of a statistical recurrent unit of the paper's, and digits pixel by pixel."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits

from bagbasis.core.arrays import Floats

_SCALES = np.array([0.0, 0.5, 0.9, 0.99, 0.999])
LENGTH = 176
N_VIEWS = 13
TRUTH_SEED = 2071
"""Seed for drawing v and w, which the paper drew once and does not print.

Of 3,000 seeds one of three with which negative values go towards 0, and positive ones rise, fall to
0 and slope downward, as the paper says.
"""


def sru_sequences(n: int, rng: np.random.Generator, length: int = LENGTH) -> Floats:
    """Return sequences (n, length) of the ground truth of 004, §7.3.1, x_1 from N(0, 100²)."""
    fixed = np.random.default_rng(TRUTH_SEED)
    v = fixed.normal(0, 0.01, (N_VIEWS, 3 * len(_SCALES)))
    w = fixed.normal(0, 1, N_VIEWS)
    mu = np.zeros((3, len(_SCALES), n))  # of x₊, of x₋, of z; scales; sequences
    z, x = np.zeros(n), rng.normal(0, 100, n)
    out = np.empty((length, n))
    for t in range(length):
        out[t] = x
        far, farther = mu[:, 3], mu[:, 4]
        z = (
            _positive(z)
            + _positive(far[0] - farther[0] - 0.01)
            - _positive(farther[1] - far[1] - 0.01)
            - _positive(farther[0] - far[0] - 0.05)
            + _positive(far[1] - farther[1] - 0.05)
        )
        statistics = np.stack([_positive(x), _positive(-x), z])
        mu = _SCALES[None, :, None] * mu + (1 - _SCALES)[None, :, None] * statistics[:, None]
        x = x + w @ (v @ mu.reshape(-1, n))
    return out.T


def _positive(values: Floats) -> Floats:
    return np.maximum(values, 0)


def pixel_sequences(n_train: int, n_test: int, seed: int) -> dict[str, Floats]:
    """Return scikit-learn's digits as sequences of 64 pixels from 0 to 1, with their classes."""
    images, classes = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(images))
    train, test = order[:n_train], order[n_train : n_train + n_test]
    return {
        "x": images[train] / 16,
        "y": classes[train],
        "x_test": images[test] / 16,
        "y_test": classes[test],
    }
