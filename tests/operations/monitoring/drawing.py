"""Bags that differ from each other without drift, of unequal sizes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

BAG_EFFECT = 0.5  # standard deviation of the bags' means; points have 1 around them
REFERENCE_SIZES, NEW_SIZES = (20, 60), (40, 160)


def draw_bags(
    rng: np.random.Generator,
    n_bags: int,
    sizes: tuple[int, int],
    shift: float = 0.0,
    n_dims: int = 2,
) -> list[NDArray[np.float64]]:
    """Bags of lo ≤ size < hi points around a mean of their own, all moved by ``shift``."""
    return [
        shift
        + BAG_EFFECT * rng.standard_normal(n_dims)
        + rng.standard_normal((rng.integers(*sizes), n_dims))
        for _ in range(n_bags)
    ]
