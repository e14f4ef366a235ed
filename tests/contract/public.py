"""What people call, by rule: nothing is listed here, and no name is left out by hand.

Public is what the ``__all__`` of a package exports, and the public methods of its classes.
(Extras are left out, as no other package imports them: their own tests give them the same values.)
Each such callable needs an example, with whose arguments junk is tried, unless nobody can call it
with things of their own:

- a class with abstract methods, a protocol or an enumeration: what people make are its kinds,
- a dataclass that checks none of its fields: the result of a call, which nobody makes,
- a hook: a method that an abstract class (`ABC`), or a protocol, defines for its kinds, so that the
  library calls it,
- a callable that needs what only the library makes: an array that is one already (people give
  ``ArrayLike``), or an object of a class that no package exports,
- a callable that is told which error to raise: only the library tells that,
- a class that people open or create by its class methods, and whose constructor refuses others,
- a callable without parameters.

An example may be there all the same, as of an embedding's `fit`: it is then tested as the others.
"""

from __future__ import annotations

import inspect
import re
from abc import ABC
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import sklearn.base

import bagbasis

HOME = Path(bagbasis.__file__).resolve().parent
STUBS = sorted(HOME.glob("*/__init__.pyi"))
# core is for packages that add components, and its functions check the others' parameters
LEFT_OUT = ("core", "neural", "singlecell")
PACKAGES = [f"bagbasis.{stub.parent.name}" for stub in STUBS if stub.parent.name not in LEFT_OUT]
MODULES = [import_module(name) for name in ("bagbasis", *PACKAGES, "bagbasis.jobs.runs")]
CLASSES = {
    name
    for file in HOME.rglob("*.py")
    for name in re.findall(r"^class (\w+)(?!.*\bProtocol\b)", file.read_text(), re.MULTILINE)
}


class PublicCallable(NamedTuple):
    """A function or a class that packages export, or a method; ``owner`` is the method's class."""

    call: Any
    owner: type | None

    @property
    def needs_example(self) -> bool:
        """Whether people can call it with things of their own."""
        result = parameters_of(self.call)
        if any("type[" in str(item.annotation) for item in result):
            return False
        if inspect.isclass(self.call):
            if hasattr(self.call, "open"):
                return False
            is_result = is_dataclass(self.call) and not _checks(self.call)
            if _is_abstract(self.call) or issubclass(self.call, Enum) or is_result:
                return False
        elif self.owner is not None and _is_hook(self.call.__name__, self.owner):
            return False
        needed = [item for item in result if item.default is inspect.Parameter.empty]
        return bool(result) and not any(map(_is_made_by_rooms, needed))


def parameters_of(call: Any) -> list[inspect.Parameter]:
    """The parameters that a caller names."""
    result = inspect.signature(call).parameters.values()
    return [item for item in result if item.name not in ("self", "cls", "params")]


def public_callables() -> Iterator[tuple[str, PublicCallable]]:
    """Yield what packages hand on to people, by "name" or "Class.method", each once."""
    seen: dict[str, Any] = {}
    for module in MODULES:
        for name in getattr(module, "__all__", ()):
            thing = getattr(module, name)
            if not callable(thing) or not _is_ours(thing) or _is_error(thing):
                continue
            if name in seen:
                assert seen[name] is thing, f"{name} is public twice, with two meanings"
                continue
            seen[name] = thing
            yield name, PublicCallable(thing, None)
            for method in dir(thing) if inspect.isclass(thing) else ():
                result = getattr(thing, method)
                if inspect.isroutine(result) and not method.startswith("_") and _is_ours(result):
                    yield f"{name}.{method}", PublicCallable(result, thing)


def _is_error(thing: object) -> bool:
    """Whether a class is raised or warned with, and made by the library alone."""
    return inspect.isclass(thing) and issubclass(thing, BaseException)


def _is_ours(thing: object) -> bool:
    return str(getattr(thing, "__module__", "")).startswith("bagbasis")


def _checks(kind: type) -> bool:
    return hasattr(kind, "__post_init__") or issubclass(kind, sklearn.base.BaseEstimator)


def _is_abstract(kind: type) -> bool:
    if getattr(kind, "_is_protocol", False):
        return True
    return any(getattr(getattr(kind, name, 0), "__isabstractmethod__", False) for name in dir(kind))


def _is_hook(method: str, owner: type) -> bool:
    """Whether an abstract class defines a method, or a protocol that its owner has."""
    abstract = [base for base in owner.__mro__ if _is_abstract(base) or ABC in base.__bases__]
    if any(method in vars(base) for base in abstract):
        return True
    has = {*dir(owner), *(item.name for item in (fields(owner) if is_dataclass(owner) else ()))}
    return any(method in names and names <= has for names in PROTOCOLS)


def _is_made_by_rooms(parameter: inspect.Parameter) -> bool:
    """Whether nothing that people make is among the kinds of values that a parameter takes."""
    annotation = inspect.formatannotation(parameter.annotation).strip("'")
    plain = re.sub(r"\b(?:Sequence|list|tuple)\[(.*?)(?:, \.\.\.)?\]", r"\1", annotation)
    kinds = {re.match(r"\w*", item)[0] for item in plain.split(" | ")} - {"None"}  # type: ignore[index]
    return bool(kinds) and kinds <= MADE_BY_US


HANDED_ON = [getattr(module, name) for module in MODULES for name in getattr(module, "__all__", ())]
"""All that the packages export; an object of a subclass counts as one of its bases."""
MADE_BY_US = {"NDArray", "Floats", "Integers", *CLASSES}.difference(
    base.__name__ for kind in HANDED_ON if inspect.isclass(kind) for base in kind.__mro__
)
PROTOCOLS = [
    {name for name in vars(kind) if not name.startswith("_")}
    for kind in HANDED_ON
    if getattr(kind, "_is_protocol", False)
]
PUBLIC = dict(public_callables())
