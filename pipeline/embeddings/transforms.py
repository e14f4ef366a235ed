"""`Transform`: what was decided from a sample of inputs, and maps each input to a row of numbers.

Both bases are one: an embedding maps bags, random features map rows. An estimator decides its
transform when it is fitted, and registers itself with the transform's class.
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

E = TypeVar("E")
Arrays = Mapping[str, NDArray[Any]]

NO_ARRAYS: Arrays = MappingProxyType({})


class Transform(Saved, ABC):
    """A fitted map of inputs to rows: immutable, small, picklable.

    It is saved as a description, `to_dict`, and `arrays` next to it.
    """

    array_names: ClassVar[tuple[str, ...]] = ()
    """Names of its own `arrays`; those of a transform inside it are the other's."""
    kind_name: ClassVar[str]
    """Name under which the estimator is registered that decides it."""

    if TYPE_CHECKING:  # at run time an inherited property would shadow a field of this name

        @property
        def n_features(self) -> int:
            """Length of a row."""

    def arrays(self) -> dict[str, Floats]:
        """Return the arrays that `to_dict` leaves out to keep reports short."""
        return {}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], arrays: Arrays = NO_ARRAYS) -> Self:
        """Return the inverse of `to_dict` and `arrays`.

        Raises
        ------
        ValueError
            Other fields than those described, values that are refused, or arrays of another
            description.
        """
        return cls(**values, **{name: arrays[name] for name in cls.array_names})


def register_estimator(
    registry: ComponentRegistry[Any],
    name: str,
    transform: type[Transform],
    short_names: Mapping[str, Mapping[str, Any]] | None = None,
) -> Callable[[type[E]], type[E]]:
    """Return a decorator that registers an estimator and makes its constructor from its fields.

    Parameters
    ----------
    registry
        Where it is registered.
    name
        Name in configs, saved models and messages.
    transform
        Class of what it decides; it takes the name, unless it is another estimator's, too.
    short_names
        Further names, and the parameters that each of them stands for.
    """

    def register(cls: type[E]) -> type[E]:
        made: Any = component(cls)
        made.spec_kind, made.kind_name = transform, name
        if "kind_name" not in vars(transform):
            transform.kind_name = name
        registry.add(name, made, short_names)
        return made

    return register
