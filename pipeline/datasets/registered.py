"""Registry of datasets by name; users and other packages may register more datasets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields

from ..core import ComponentRegistry, checked
from ..core.errors import ParameterError
from .base import Dataset

DATASETS: ComponentRegistry[Dataset] = ComponentRegistry(
    "dataset", "bagbasis.datasets", __package__
)
"""The registered datasets by name."""
register_dataset = DATASETS.register
"""Register a class of datasets under its ``name``: a decorator, the method of `DATASETS`."""


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
    kind = DATASETS.check("name", name)
    known = [field.name for field in fields(kind)]
    for key in params:
        if key not in known:
            raise ParameterError(f"dataset {name!r} has no parameter {key!r}; it has {known}")
    make: Callable[..., Dataset] = kind
    return make(**params)
