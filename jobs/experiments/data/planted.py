"""`planted_rows`: a target of a few coordinates among many, some of them noisy copies."""

from __future__ import annotations

import numpy as np

from bagbasis.core.arrays import Floats

PLANTED = 3  # coordinates the target depends on
_NOISE = 0.3  # standard deviation added to the target's three terms
_COPIED = 0.5  # standard deviation of what copies differ by


def planted_rows(
    n: int, n_dims: int, *, seed: int, copies: bool = False
) -> tuple[Floats, Floats, tuple[int, ...]]:
    """Return rows (n, n_dims), a target (n,) and the coordinates that it depends on.

    y = sin(2 x_a) + ½ x_b² + sign(x_c) + noise; none of the three has a copy's information. With
    ``copies`` as many other coordinates are x_a, x_b and x_c with noise.
    """
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, n_dims))
    order = rng.permutation(n_dims)
    a, b, c = order[:PLANTED].tolist()
    if copies:
        x[:, order[PLANTED : 2 * PLANTED]] = (
            x[:, [a, b, c]] + _COPIED * rng.standard_normal((n, PLANTED))
        ) / (1 + _COPIED**2) ** 0.5
    y = np.sin(2 * x[:, a]) + 0.7 * (x[:, b] ** 2 - 1) + np.sign(x[:, c])
    return x, y + _NOISE * rng.standard_normal(n), (a, b, c)
