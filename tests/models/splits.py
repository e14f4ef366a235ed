"""Which of the first bags are held out of a fit, and which of them judge its penalty."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bagbasis.data.labelled.splits import HOLDOUT_SEED, VALIDATION_SEED, Split


def held_out(fraction: float, n: int) -> NDArray[np.bool_]:
    """Return whether each of the first ``n`` bags is of ``holdout=fraction``."""
    return np.asarray(Split(fraction, HOLDOUT_SEED).members(0, n))


def validating(fraction: float, n: int) -> NDArray[np.bool_]:
    """Return whether each of the first ``n`` bags is of ``validation_fraction=fraction``."""
    return np.asarray(Split(fraction, VALIDATION_SEED).members(0, n))
