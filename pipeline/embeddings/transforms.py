"""`Transform`: base class of fitted maps from inputs to rows of numbers.

Fitted embeddings, which map bags, and fitted random features, which map rows, are transforms. An
estimator makes its transform when it is fitted. It is registered with the class of the transform.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

from numpy.typing import NDArray

from ..core import ComponentRegistry, component
from ..core.arrays import Floats
from ..core.saved import Saved

_E = TypeVar("_E")
Arrays = Mapping[str, NDArray[Any]]

NO_ARRAYS: Arrays = MappingProxyType({})


class Transform(Saved, ABC):
    """A fitted map from inputs to rows: immutable, small, picklable.

    A saved transform consists of a description, `to_dict`, and of `arrays`.
    """

    array_names: ClassVar[tuple[str, ...]] = ()
    """Names of the `arrays` of this transform, without the arrays of a transform inside it."""
    kind_name: ClassVar[str]
    """Name under which the estimator of this transform is registered."""

    if TYPE_CHECKING:  # at run time an inherited property would shadow a field of this name

        @property
        def n_features(self) -> int:
            """Length of a row."""

    def arrays(self) -> dict[str, Floats]:
        """Return the arrays that `to_dict` omits to keep reports short."""
        return {}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], arrays: Arrays = NO_ARRAYS) -> Self:
        """Return the transform that `to_dict` and `arrays` described.

        Raises
        ------
        ValueError
            If fields are missing, unknown or have values that are not allowed, or if the arrays do
            not belong to the description.
        """
        return cls(**values, **{name: arrays[name] for name in cls.array_names})


def register_estimator(
    registry: ComponentRegistry[Any],
    name: str,
    transform: type[Transform],
    short_names: Mapping[str, Mapping[str, Any]] | None = None,
) -> Callable[[type[_E]], type[_E]]:
    """Return a decorator that registers an estimator and makes its constructor from its fields.

    Parameters
    ----------
    registry
        Registry to which the estimator is added.
    name
        Name in configs, saved models and messages.
    transform
        Class of the fitted transform. It gets the same name, unless it has the name of another
        estimator.
    short_names
        Further names, and the parameters that each of them stands for.
    """

    def register(cls: type[_E]) -> type[_E]:
        made: Any = component(cls)
        made.spec_kind, made.kind_name = transform, name
        if "kind_name" not in vars(transform):
            transform.kind_name = name
        registry.add(name, made, short_names)
        registered: type[_E] = made
        return registered

    return register
