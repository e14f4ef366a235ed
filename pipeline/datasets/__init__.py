"""Labelled bags for demos, tests and experiments: generators and bundled data."""

from .base import BLOCK, Dataset
from .density_mapping import DensityMapping
from .digits import Digits
from .dirichlet import Dirichlet
from .generate import generate
from .gmm_components import GMMComponents
from .registered import DATASETS, make_dataset, register_dataset
from .synthetic_mapping import SyntheticMapping

__all__ = [
    "BLOCK",
    "DATASETS",
    "Dataset",
    "DensityMapping",
    "Digits",
    "Dirichlet",
    "GMMComponents",
    "SyntheticMapping",
    "generate",
    "make_dataset",
    "register_dataset",
]
