"""Seconds that each solver takes, as far as they depend on the solver.

They depend on sizes alone, so that the choice is the same on any machine.
"""

from __future__ import annotations

# Seconds of two cores in float32, per unit of work. Both solvers need the features once; that is
# left out. Measured on 50,000 bags, conjugate gradients / exact: with a penalty that is given .6 to
# 1.3 at D = 1,024, .6 at 2,048, .34 at 4,096, .14 at 8,192; with validation .66 at 4,096.
PER_PRODUCT = 5.5e-12  # of N D², the sums, and of N² D, those of rows
SECONDS_PER_FACTOR = 7e-12  # times D³, for a Cholesky factor in double
SECONDS_PER_ENTRY = 5e-10  # times N D per step, where features are cached
SECONDS_PER_MADE = 4e-9  # times N D per step, where they are computed again
CACHED_BYTES = 2**32  # features that are supposed to be cached
_STEPS, PATH_STEPS = 10, 30
FACTORS, PATH_FACTORS = 1, 8
SECONDS_PER_PASS = 0.05  # time of every step, whatever its size
MIN_SECONDS = 1.0  # an exact fit that takes less time is not worth iterating


def seconds_of_sums(n_bags: int, n_features: int, is_path: bool) -> float:
    """Return the seconds of sums of products and of their Cholesky factors."""
    n, d = float(n_bags), float(n_features)
    n_factors = PATH_FACTORS if is_path else FACTORS
    return PER_PRODUCT * n * d**2 + SECONDS_PER_FACTOR * n_factors * d**3


def seconds_of_rows(n_bags: int, n_features: int, is_path: bool) -> float:
    """Return the seconds of products between bags and of their Cholesky factors."""
    n, d = float(n_bags), float(n_features)
    n_factors = PATH_FACTORS if is_path else FACTORS
    return PER_PRODUCT * 2 * n**2 * d + SECONDS_PER_FACTOR * n_factors * n**3


def seconds_of_gradients(n_bags: int, n_features: int, is_path: bool, n_targets: int = 1) -> float:
    """Return the seconds of conjugate gradients, or what they have to save at least."""
    n, d = float(n_bags), float(n_features)
    entry = SECONDS_PER_ENTRY if 4 * n * d <= CACHED_BYTES else SECONDS_PER_MADE
    columns = n_targets * (20 if is_path else 1)
    step = n * d * (entry + 4 * PER_PRODUCT * columns) + SECONDS_PER_PASS
    return max(MIN_SECONDS, (PATH_STEPS if is_path else _STEPS) * step)
