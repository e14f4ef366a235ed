"""Declared types that the tests of hypotheses share."""

from __future__ import annotations

from typing import Annotated

from ..core import FractionOrZero, Integer, OneOf, Real
from ..embeddings.random_features.base import SCALE_BOUNDS

MAX_PERMUTATIONS = 10**6  # p-values from 10^-6 on; more take hours where 10^3 take seconds
# The matrices of NFSIC and FSSD have the square of this size; 5 or 10 are usual.
MAX_LOCATIONS = 4096
MAX_FEATURES = 65_536  # random Fourier features or sines: half a megabyte a row

KERNEL_WIDTH = Real(*SCALE_BOUNDS)
KERNEL = OneOf("gaussian", "laplacian", "matern")

PERMUTATIONS = Integer(1, MAX_PERMUTATIONS)
DRIFT_STATISTIC = OneOf("fuse", "mmd_u")

CorrelationLength = Annotated[float, Real(ge=0)]
LearningFraction = Annotated[float, FractionOrZero]
Permutations = Annotated[int, PERMUTATIONS]
DriftStatistic = Annotated[str, DRIFT_STATISTIC]
