"""Checks of declared parameters: arguments of functions and attributes of instances."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from numbers import Integral
from typing import Any, NamedTuple, ParamSpec, TypeVar

from .constraints import Constraint, Either, OneOf, members_of
from .declarations import constraints_of
from .errors import ParameterError, missing_extra
from .moved import RENAMED, with_new_names
from .wrong_calls import wrong_call

_P = ParamSpec("_P")
_R = TypeVar("_R")

_SEED, RNG = "seed", "rng"

ConstraintTable = Mapping[str, Constraint[Any]]
"""Constraint of each parameter, by name."""


def checked(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Check the arguments of a function against the constraints of its annotations.

    Parameters without a constraint are not checked. The function gets plain values, such as an int
    for a NumPy integer. A ``seed`` may also be a `numpy.random.Generator`, from which a seed is
    drawn; ``rng`` is another name for ``seed``.

    Raises
    ------
    ParameterError
        If an argument is not accepted. The decorated function raises it; the message names the
        parameter.

    Examples
    --------
    >>> from typing import Annotated
    >>> from bagbasis.core import Integer, checked
    >>> @checked
    ... def double(n: Annotated[int, Integer(ge=0)]):
    ...     return 2 * n
    >>> double(3)
    6
    """
    signature = inspect.signature(function)
    owner = function.__qualname__.removesuffix(".__init__")
    has_seed = _SEED in signature.parameters and RNG not in signature.parameters
    known: dict[str, Constraint[Any]] = {}
    quick, by_name = _QuickBinding.of(signature), _any_arguments(function)

    def check(arguments: dict[str, Any]) -> None:
        if has_seed and hasattr(arguments.get(_SEED), "bit_generator"):
            arguments[_SEED] = int(arguments[_SEED].integers(2**63))
        for name in arguments.keys() & known.keys():
            arguments[name] = known[name].check(name, arguments[name])

    @wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        if has_seed and RNG in kwargs:
            if _SEED in kwargs:
                raise ParameterError("seed and rng are given; they are two names of one thing")
            kwargs[_SEED] = kwargs.pop(RNG)
        if not known:  # at the first call: annotations may name later classes
            known.update(constraints_of(function))
        if owner in RENAMED and kwargs:
            renamed = with_new_names(owner, kwargs)
            kwargs.clear()
            kwargs.update(renamed)
        values = None if quick is None else quick.bind(args, kwargs)
        try:
            if values is not None:
                check(values)
                return by_name(**values)
            try:
                bound = signature.bind(*args, **kwargs)
            except TypeError as error:
                raise (_wrong_call(function, signature, args, kwargs) or error) from None
            check(bound.arguments)
            return function(*bound.args, **bound.kwargs)
        except ModuleNotFoundError as error:
            without_extra = missing_extra(error, owner)
            if without_extra is None:
                raise
            raise without_extra from error

    return call


def _any_arguments(function: Callable[_P, _R]) -> Callable[..., _R]:
    """Return a function as it is, to be called with arguments that were checked."""
    return function


class _QuickBinding(NamedTuple):
    """Arguments by name, for functions whose parameters all have names; quicker than `inspect`.

    Attributes
    ----------
    positional : tuple of str
        Parameters that may be passed by position.
    names, required : frozenset of str
        All parameters, and those without a default.
    """

    positional: tuple[str, ...]
    names: frozenset[str]
    required: frozenset[str]

    @classmethod
    def of(cls, signature: inspect.Signature) -> _QuickBinding | None:
        """Return the binding for a signature; None if a parameter cannot be passed by name."""
        by_place, by_name = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
        parameters = signature.parameters.values()
        if any(parameter.kind not in (by_place, by_name) for parameter in parameters):
            return None
        return cls(
            tuple(parameter.name for parameter in parameters if parameter.kind is by_place),
            frozenset(signature.parameters),
            frozenset(
                parameter.name for parameter in parameters if parameter.default is parameter.empty
            ),
        )

    def bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the arguments by name; None for a wrong call, which `inspect` reports."""
        values = dict(zip(self.positional, args, strict=False))
        if len(args) > len(self.positional) or values.keys() & kwargs.keys():
            return None
        values.update(kwargs)
        return values if self.required <= values.keys() <= self.names else None


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
        Instance of a class that declares parameters. Each parameter is the attribute of the same
        name.
    of : str
        Text that is added to the names in messages: "of the drift gates".

    Raises
    ------
    ParameterError
        If a constraint does not accept a parameter. The message names the first such parameter.

    Examples
    --------
    >>> from bagbasis import MomentsEmbedding
    >>> from bagbasis.core import check_parameters
    >>> check_parameters(MomentsEmbedding())['covariance']
    True
    """
    end = f" {of}" if of else ""
    return {
        name: accepts.check(name + end, getattr(instance, name))
        for name, accepts in constraints_of(type(instance)).items()
    }


def keep_checked(instance: object, of: str = "") -> None:
    """Check the fields of a frozen dataclass and store them as plain values.

    Call it in ``__post_init__``. The fields are checked as by `check_parameters`. A list becomes a
    tuple, so that the instance can be hashed.

    Examples
    --------
    >>> import numpy as np
    >>> from bagbasis.embeddings import FourierSpec  # whose __post_init__ calls it
    >>> FourierSpec(n_inputs=np.int64(5), n_features=64, scale=1).scale
    1.0
    """
    for name, value in check_parameters(instance, of).items():
        object.__setattr__(instance, name, tuple(value) if isinstance(value, list) else value)


def check_position(name: str, value: object, n: int) -> None:
    """Raise ParameterError unless a value is the position of one of n items."""
    if isinstance(value, bool) or not isinstance(value, Integral) or not 0 <= int(value) < n:
        raise ParameterError(f"{name} is {value!r}; expected 0 to {n - 1}")


def decided(table: ConstraintTable, *names: str) -> dict[str, Constraint[Any]]:
    """Return constraints for parameters whose automatic choices have been made.

    A word such as "auto" among numbers asks for a choice. The returned constraints no longer accept
    it.

    Examples
    --------
    >>> from bagbasis.core import OneOf, Real, decided
    >>> table = {'scale': Real(gt=0) | OneOf('median')}
    >>> decided(table, 'scale')['scale']
    Real(ge=None, le=None, gt=0, lt=None, kind='number')
    """
    return {name: _without_words(table[name]) for name in names}


def _without_words(constraint: Constraint[Any]) -> Constraint[Any]:
    first, *others = members_of(constraint)
    numbers = [first, *(member for member in others if not isinstance(member, OneOf))]
    return numbers[0] if len(numbers) == 1 else Either(tuple(numbers))
