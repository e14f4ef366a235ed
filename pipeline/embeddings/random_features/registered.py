"""`RANDOM_FEATURES`: the random features by name, and how they register themselves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import TypeVar, dataclass_transform

from ...core import ComponentRegistry, NameIn, component
from .base import FeatureSpec, RandomFeatures

F = TypeVar("F", bound=RandomFeatures)

RANDOM_FEATURES: ComponentRegistry[RandomFeatures] = ComponentRegistry(
    "random features", "bagbasis.random_features", __package__
)
DEFAULT_FEATURES = "fourier"  # what a description without a name is of


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

    def register(cls: type[F]) -> type[F]:
        made = component(cls)
        made.spec_kind, made.kind_name = spec, name
        RANDOM_FEATURES.add(name, made)
        return made

    return register


def named_features(name: str) -> RandomFeatures:
    """Return the random features of a registered name, with their defaults.

    Raises
    ------
    ParameterError
        Another name.
    """
    return RANDOM_FEATURES.make(NameIn(RANDOM_FEATURES).check("random_features", name))
