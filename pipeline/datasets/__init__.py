"""Labelled bags for demos, tests and experiments: generators and bundled data."""

import lazy_loader

__getattr__, __dir__, _ = lazy_loader.attach_stub(__name__, __file__)

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
