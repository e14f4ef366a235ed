"""Functions made from the classes of ingest, so that parameters are declared once."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, Protocol, TypeVar

from ..core.errors import ParameterError
from ..core.wrong_calls import wrong_call
from ..data.store.store import BagStore

_P = ParamSpec("_P")
_T = TypeVar("_T")


class Runs(Protocol):
    """An ingest with all its parameters."""

    def run(self) -> BagStore:
        """Make the store, or append to it."""


def function_of(ingest: Callable[_P, Runs], name: str) -> Callable[_P, BagStore]:
    """Return a function that runs an ingest class; its parameters are the fields of the class."""
    signature = inspect.signature(ingest)

    @wraps(ingest, assigned=("__doc__", "__module__"), updated=())
    def run(*args: _P.args, **kwargs: _P.kwargs) -> BagStore:
        if wrong := wrong_call(name, signature, args, kwargs):
            raise wrong
        return ingest(*args, **kwargs).run()

    run.__name__ = run.__qualname__ = name  # for help, and so that it can be pickled
    return run


def check_known_ids(known_ids: str, mode: str) -> None:
    """Raise ParameterError for known_ids="skip" without mode="append"."""
    if known_ids != "refuse" and mode != "append":
        raise ParameterError(
            "known_ids is given, but mode is not 'append'; pass mode='append', or leave it out"
        )
