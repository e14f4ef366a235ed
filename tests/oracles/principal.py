"""Principal components the slow way: a dense singular value decomposition of all rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def components_by_svd(
    rows: NDArray[np.float64], n: int, whiten: bool = False
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the mean, and the first ``n`` axes, over their deviations where whitened.

    The entry of largest magnitude of an axis is positive.
    """
    mean = rows.mean(axis=0)
    _, values, axes = np.linalg.svd(rows - mean, full_matrices=False)
    for i, axis in enumerate(axes):
        if axis[np.argmax(np.abs(axis))] < 0:
            axes[i] = -axis
    if whiten:
        axes = axes[:n] * np.sqrt(len(rows) - 1) / values[:n, None]
    return mean, axes[:n]
