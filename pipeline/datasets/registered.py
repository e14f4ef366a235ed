"""Registry of datasets by name; users may register more datasets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields

from ..core import checked
from ..core.errors import ParameterError
from .base import Dataset
from .density_mapping import DensityMapping
from .digits import Digits
from .dirichlet import Dirichlet
from .gmm_components import GMMComponents
from .synthetic_mapping import SyntheticMapping

DATASETS: dict[str, type[Dataset]] = {}
"""The registered datasets by name."""


def register_dataset(cls: type[Dataset]) -> type[Dataset]:
    """Register a dataset class under its ``name``; can be used as a decorator.

    Raises
    ------
    ParameterError
        If another class is registered under the same name.

    See Also
    --------
    Dataset : Base class of datasets.
    make_dataset : Create a dataset by name.

    Examples
    --------
    >>> from bagbasis.datasets import DATASETS, GMMComponents, register_dataset
    >>> @register_dataset
    ... class Pairs(GMMComponents):
    ...     name = 'pairs'
    >>> DATASETS.pop('pairs') is Pairs
    True
    """
    if DATASETS.get(cls.name, cls) is not cls:
        raise ParameterError(f"dataset {cls.name!r} is registered already; choose another name")
    DATASETS[cls.name] = cls
    return cls


for _cls in (DensityMapping, Digits, Dirichlet, GMMComponents, SyntheticMapping):
    register_dataset(_cls)


@checked
def make_dataset(name: str, **params: object) -> Dataset:
    """Create a registered dataset by name.

    Raises
    ------
    ParameterError
        If the name or a parameter is unknown, or a value is out of range.

    See Also
    --------
    register_dataset : Register a dataset of your own.
    generate : Write a dataset to a store.

    Examples
    --------
    >>> from bagbasis.datasets import make_dataset
    >>> make_dataset('gmm_components', n_points=50).params['n_points']
    50
    """
    if name not in DATASETS:
        raise ParameterError(f"unknown dataset {name!r}; there are {sorted(DATASETS)}")
    known = [field.name for field in fields(DATASETS[name])]
    for key in params:
        if key not in known:
            raise ParameterError(f"dataset {name!r} has no parameter {key!r}; it has {known}")
    make: Callable[..., Dataset] = DATASETS[name]
    return make(**params)
