"""Classes of ingest as functions: declared once, called by either name."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, Protocol, TypeVar

from ..core.errors import ParameterError
from ..data.store.store import BagStore
from .earlier_keys import refuse_gone

P = ParamSpec("P")
T = TypeVar("T")


class Runs(Protocol):
    """An ingest that has its parameters."""

    def run(self) -> BagStore:
        """Make the store, or append to it."""


def function_of(ingest: Callable[P, Runs], name: str) -> Callable[P, BagStore]:
    """Return a function of the parameters that a class declares as its fields, which runs it."""

    @wraps(ingest, assigned=("__doc__", "__module__"), updated=())
    def run(*args: P.args, **kwargs: P.kwargs) -> BagStore:
        return ingest(*args, **kwargs).run()

    run.__name__ = run.__qualname__ = name  # for help, and so that it can be pickled
    return run


def refusing_gone(kind: type[T]) -> type[T]:
    """Let a class refuse the keys of earlier versions; the error names what to write instead."""
    declared = kind.__init__

    @wraps(declared)
    def begin(self: T, *args: object, **parameters: object) -> None:
        refuse_gone(parameters)
        declared(self, *args, **parameters)

    type.__setattr__(kind, "__init__", begin)
    return kind


def check_known_ids(known_ids: str, mode: str) -> None:
    """Raise ParameterError where no store has ids that could be known."""
    if known_ids != "refuse" and mode != "append":
        raise ParameterError(
            "known_ids is given, but mode is not 'append'; pass mode='append', or leave it out"
        )
