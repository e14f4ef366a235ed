"""Orthonormal bases of L2([0, 1]^d): index sets, evaluation and projection."""

from .coefficients import project
from .functions import BASES, evaluate_basis, evaluate_series
from .index_sets import index_set, norms

__all__ = ["BASES", "evaluate_basis", "evaluate_series", "index_set", "norms", "project"]
