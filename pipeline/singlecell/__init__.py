"""Patients as bags of cells: distances between samples, their scores, and donors' tests.

The classes have the methods that patpy asks of its own, and need neither it nor scanpy.
"""

from .distances import METHODS, sample_distances
from .methods import BagbasisSamples, BagbasisSupervised
from .pairs import divergence_blocks
from .scores import batch_score, information_retention, replicate_robustness, trajectory_score

__all__ = [
    "METHODS",
    "BagbasisSamples",
    "BagbasisSupervised",
    "batch_score",
    "divergence_blocks",
    "information_retention",
    "replicate_robustness",
    "sample_distances",
    "trajectory_score",
]
