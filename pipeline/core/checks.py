"""Checks of declared parameters: of a function's arguments, and of an instance's attributes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from .constraints import Constraint, Either, OneOf, members_of
from .declarations import constraints_of
from .errors import ParameterError
from .wrong_calls import wrong_call

P = ParamSpec("P")
R = TypeVar("R")

SEED, RNG = "seed", "rng"

Table = Mapping[str, Constraint[Any]]
"""What each parameter may be, by its name."""


def checked(
    table: Table | None = None, /, **more: Constraint[Any]
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator for a function: it refuses arguments that are not accepted.

    What each parameter may be is declared by its annotation, or by a table where one is given.
    The function gets plain values: an int where a caller gave one of numpy's. Parameters of which
    neither annotation nor table says what they may be are not checked.
    A ``seed`` may also be a `numpy.random.Generator`, which draws one and so moves on; ``rng`` is
    another name for it.

    Parameters
    ----------
    table : mapping, optional
        Constraints by name, in place of the annotations.
    **more : Constraint
        Further constraints by name, in place of the annotations.

    Raises
    ------
    ParameterError
        Raised by the function returned; names the parameter.
    """
    constraints = {**(table or {}), **more}

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(function)
        unknown = constraints.keys() - signature.parameters.keys()
        if unknown:
            raise TypeError(f"{function.__qualname__} has no parameters {sorted(unknown)}")

        has_seed = SEED in signature.parameters and RNG not in signature.parameters
        known: dict[str, Constraint[Any]] = dict(constraints)

        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            if has_seed and RNG in kwargs:
                if SEED in kwargs:
                    raise ParameterError("seed and rng are given; they are two names of one thing")
                kwargs[SEED] = kwargs.pop(RNG)
            if not known:  # at the first call: annotations may name what is defined further below
                known.update(constraints_of(function))
            try:
                bound = signature.bind(*args, **kwargs)
            except TypeError as error:
                raise (_wrong_call(function, signature, args, kwargs) or error) from None
            given = bound.arguments
            if has_seed and hasattr(given.get(SEED), "bit_generator"):
                given[SEED] = int(given[SEED].integers(2**63))
            for name in given.keys() & known.keys():
                given[name] = known[name].check(name, given[name])
            return function(*bound.args, **bound.kwargs)

        if constraints:
            call.PARAMETERS = constraints  # type: ignore[attr-defined]  # for `parameters_of`
        return call

    return decorate


def _wrong_call(
    function: Callable[..., Any],
    signature: inspect.Signature,
    args: tuple[Any, ...],
    kwargs: Mapping[str, object],
) -> TypeError | None:
    """Return the error of a call, of a method without ``self``, of a constructor by its class."""
    name, first = function.__name__, next(iter(signature.parameters), None)
    if first in ("self", "cls"):
        known = list(signature.parameters.values())[1:]
        name = type(args[0]).__name__ if name == "__init__" else name
        signature, args = signature.replace(parameters=known), args[1:]
    return wrong_call(name, signature, args, kwargs)


def check_parameters(instance: object, of: str = "") -> dict[str, Any]:
    """Return the declared parameters of an instance as plain values, checked.

    Parameters
    ----------
    instance : object
        Instance of a class that declares parameters; a parameter is the attribute of the same name.
    of : str
        Added to the names in messages: "of the drift gates".

    Raises
    ------
    ParameterError
        Names the first parameter that its constraint does not accept.
    """
    end = f" {of}" if of else ""
    return {
        name: accepts.check(name + end, getattr(instance, name))
        for name, accepts in constraints_of(type(instance)).items()
    }


def keep_checked(instance: object, of: str = "") -> None:
    """Check the fields of a frozen dataclass and keep them as plain values; see `check_parameters`.

    It is called by ``__post_init__``. A list becomes a tuple, so that the instance can be hashed.
    """
    for name, value in check_parameters(instance, of).items():
        object.__setattr__(instance, name, tuple(value) if isinstance(value, list) else value)


def decided(table: Table, *names: str) -> dict[str, Constraint[Any]]:
    """Return the constraints of parameters once their open choices are made.

    A word such as "auto" beside numbers asks for a choice: it is accepted no more.
    """
    return {name: _without_words(table[name]) for name in names}


def _without_words(constraint: Constraint[Any]) -> Constraint[Any]:
    first, *others = members_of(constraint)
    left = [first, *(one for one in others if not isinstance(one, OneOf))]
    return left[0] if len(left) == 1 else Either(tuple(left))
