"""`RANDOM_FEATURES`: the registry of random features, and the decorator that adds to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import TypeVar, dataclass_transform

from ...core import ComponentRegistry, NameIn
from ..transforms import register_estimator
from .base import FeatureSpec, RandomFeatures

F = TypeVar("F", bound=RandomFeatures)

RANDOM_FEATURES: ComponentRegistry[RandomFeatures] = ComponentRegistry(
    "random features", "bagbasis.random_features", __package__
)
"""The random features by name."""
DEFAULT_FEATURES = "fourier"
"""Name of the random features of a description without a name."""


@dataclass_transform(eq_default=False, kw_only_default=True, field_specifiers=(field,))
def random_features(name: str, spec: type[FeatureSpec]) -> Callable[[type[F]], type[F]]:
    """Return a decorator that registers `RandomFeatures`; their fields are the constructor's.

    Parameters
    ----------
    name
        Name in configs, saved models and messages.
    spec
        Class of what `RandomFeatures.resolve` returns.
    """
    return register_estimator(RANDOM_FEATURES, name, spec)


def named_features(name: str) -> RandomFeatures:
    """Return the random features of a registered name, with their defaults.

    Raises
    ------
    ParameterError
        If the name is not registered.
    """
    return RANDOM_FEATURES.make(NameIn(RANDOM_FEATURES).check("random_features", name))
