"""A parameter is declared once: in the signature of the class or function that has it.

The annotation has the constraint, the signature the default, and the docstring the description::

    @component
    class Window:
        \"\"\"The newest ``bags``; numpydoc sections describe the fields.\"\"\"

        bags: Annotated[int, Integer(1)] | None = None

`parameters_of` returns what is declared. Checks, scikit-learn's ``get_params``, the sections of
configs, help texts and the values that tests try are derived from it.
"""

from __future__ import annotations

import builtins
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass, replace
from functools import reduce, wraps
from operator import or_
from types import MappingProxyType, NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    SupportsIndex,
    TypeVar,
    Union,
    cast,
    dataclass_transform,
    get_args,
    get_origin,
)
from weakref import WeakKeyDictionary

from .constraints import (
    Boolean,
    Constraint,
    False_,
    Instance,
    Integer,
    None_,
    OneOf,
    Real,
    Text,
)
from .docstrings import REQUIRED, entries_of, with_entries, with_types
from .moved import RENAMED, with_new_names
from .wrong_calls import wrong_call

_T = TypeVar("_T")
_D = TypeVar("_D", bound=Callable[..., Any])

_PLAIN: Mapping[object, Constraint[Any]] = {
    None: None_,
    NoneType: None_,
    bool: Boolean,
    int: Integer(),
    float: Real(),
    str: Text,
}


@dataclass(frozen=True)
class Parameter:
    """One declared parameter of a class or a function.

    Attributes
    ----------
    name : str
    accepts : Constraint or None
        Values that the parameter accepts; None if the annotation does not say.
    default : object
        Default value; `REQUIRED` if there is none.
    text : str
        Description in the docstring; empty under ``python -OO``, which drops docstrings.

    Examples
    --------
    >>> from bagbasis import MomentsEmbedding
    >>> from bagbasis.core import parameters_of
    >>> parameters_of(MomentsEmbedding)['covariance'].default
    True
    """

    name: str
    accepts: Constraint[Any] | None
    default: Any
    text: str

    @property
    def summary(self) -> str:
        """First sentence of the description, without its full stop."""
        return re.split(r"\.\s|:\s*$", self.text + " ")[0].rstrip(". ")


@dataclass_transform(eq_default=False, kw_only_default=True, field_specifiers=(field,))
def component(cls: type[_T]) -> type[_T]:
    """Give a class a constructor that stores its annotated fields.

    Parameters are keyword-only unless a field says ``field(kw_only=False)``. Comparison and
    ``repr`` are not changed, because scikit-learn's estimators have their own. The docstring is
    completed, see `documented`.

    Examples
    --------
    >>> from typing import Annotated
    >>> from bagbasis.core import Integer, component
    >>> @component
    ... class Count:
    ...     n: Annotated[int, Integer(ge=1)] = 10
    >>> Count(n=3).n
    3
    """
    is_described = bool(cls.__doc__)  # else a dataclass gets its signature as its docstring
    made = dataclass(eq=False, repr=False, kw_only=True)(cls)
    if is_described:
        documented(made)
    return named_calls(made, _signature(made))


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(field,))
def frozen_component(cls: type[_T]) -> type[_T]:
    """Make a class a frozen dataclass whose parameters are keyword-only.

    A wrong call raises a TypeError that names the class and the nearest parameter. The docstring is
    completed, see `documented`.

    Examples
    --------
    >>> from bagbasis.core.declarations import frozen_component
    >>> @frozen_component
    ... class Count:
    ...     n: int = 10
    >>> Count(n=3)
    Count(n=3)
    """
    return documented(named_calls(dataclass(frozen=True, kw_only=True)(cls)))


def named_calls(made: type[_T], signature: inspect.Signature | None = None) -> type[_T]:
    """Let the constructor of a class take names of `RENAMED`, and name the class in its errors.

    ``signature`` is that of the constructor, to be shown.
    """
    init: Callable[..., None] = made.__init__
    signature = signature or inspect.signature(init)
    of_call = signature.replace(parameters=[*signature.parameters.values()][1:])

    @wraps(init)
    def __init__(self: object, *args: object, **kwargs: object) -> None:  # noqa: N807 - it is one
        if type(self).__name__ in RENAMED:
            kwargs = with_new_names(type(self).__name__, kwargs)
        try:
            init(self, *args, **kwargs)
        except TypeError:
            wrong = wrong_call(type(self).__name__, of_call, args, kwargs)
            if wrong is None:
                raise
            raise wrong from None

    __init__.__signature__ = signature  # type: ignore[attr-defined]  # for help, and for scikit-learn
    made.__init__ = __init__  # type: ignore[method-assign]
    return made


def own_first(cls: type[_T]) -> type[_T]:
    """Put the parameters that a dataclass inherits after its own ones in the signature.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from inspect import signature
    >>> from bagbasis.core.declarations import own_first
    >>> @dataclass(kw_only=True)
    ... class Base:
    ...     seed: int = 0
    >>> @own_first
    ... @dataclass(kw_only=True)
    ... class Count(Base):
    ...     n: int
    >>> list(signature(Count).parameters)
    ['n', 'seed']
    """
    cls.__init__.__signature__ = _signature(cls)  # type: ignore[attr-defined]  # for help
    return cls


def documented(owner: _D) -> _D:
    """Complete "Parameters" in the docstring of a class or a function; can be used as a decorator.

    An entry needs only the name and the description. The constraint in words and the default come
    from the signature. An entry with a type, such as a shape, keeps it and gets only the default. A
    class also gets the entries of inherited parameters that it does not describe.

    `component` and the registries do this for their classes. A class's docstring is completed when
    it is read. A function's docstring is completed at once: its annotations must not name what is
    defined later.

    Examples
    --------
    >>> from typing import Annotated
    >>> from bagbasis.core import Integer
    >>> from bagbasis.core.declarations import documented
    >>> @documented
    ... def count(n: Annotated[int, Integer(ge=1)] = 10):
    ...     \"\"\"Count.
    ...
    ...     Parameters
    ...     ----------
    ...     n
    ...         Number of bags.
    ...     \"\"\"
    >>> count.__doc__.splitlines()[-2]
    'n : int ≥ 1, default 10'
    """
    written = _docstring(owner)
    if inspect.isclass(owner):
        is_signature = written.startswith(f"{owner.__name__}(")  # a dataclass's without docstring
        if type(vars(owner).get("__doc__")) is str and not is_signature:
            owner.__doc__ = _Docstring(written, owner)
    elif written:
        declared = _declared(owner)  # not kept: annotations may name what is defined later
        types = {parameter.name: (parameter.accepts, parameter.default) for parameter in declared}
        owner.__doc__ = with_types(written, types)
    return owner


def parameters_of(owner: Callable[..., Any]) -> Mapping[str, Parameter]:
    """Return the declared parameters of a class or a function, by name.

    A class's own parameters come before those that it inherits.

    Raises
    ------
    TypeError
        If an annotation cannot be evaluated. The message names the class and the parameter.

    Examples
    --------
    >>> from bagbasis import MomentsEmbedding
    >>> from bagbasis.core import parameters_of
    >>> list(parameters_of(MomentsEmbedding))
    ['covariance', 'standardize', 'out_of_box', 'box', 'dtype']
    """
    runs = getattr(owner, "__wrapped__", None)
    if inspect.isclass(runs):  # a function that runs a class has the parameters of the class
        return parameters_of(runs)
    if owner not in _KNOWN:
        _KNOWN[owner] = MappingProxyType(
            {parameter.name: parameter for parameter in _declared(owner)}
        )
    return _KNOWN[owner]


def with_fields_of(owner: Callable[..., Any], *names: str) -> Callable[[type[_T]], type[_T]]:
    """Give a class parameters of another class or function; `dataclass` then makes them fields.

    Constraint, default and description are those of the owner. The new fields come after those
    that the class declares. A parameter that the class's docstring describes keeps that
    description.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from bagbasis import MomentsEmbedding
    >>> from bagbasis.core import parameters_of
    >>> from bagbasis.core.declarations import with_fields_of
    >>> @dataclass
    ... @with_fields_of(MomentsEmbedding, "covariance")
    ... class Moments:
    ...     n: int
    >>> Moments(3).covariance
    True
    >>> parameters_of(Moments)['covariance'] == parameters_of(MomentsEmbedding)['covariance']
    True
    """

    def decorate(cls: type[_T]) -> type[_T]:
        described, entries = entries_of(_docstring(cls)), dict[str, tuple[str, str]]()
        for name in names:
            parameter = parameters_of(owner)[name]
            cls.__annotations__[name] = (
                Any if parameter.accepts is None else Annotated[Any, parameter.accepts]
            )
            if parameter.default is not REQUIRED:
                setattr(cls, name, parameter.default)
            if parameter.text and name not in described:
                entries[name] = "", f"    {parameter.text}"
        cls.__doc__ = with_entries(cls.__doc__ or "", entries)
        return cls

    return decorate


def joined_parameters(owners: Iterable[Callable[..., Any]]) -> dict[str, Parameter]:
    """Return the parameters of several classes or functions by name, merged.

    A parameter accepts every value that one of the owners accepts. It has the default of the first
    owner. Its text joins the first sentences that differ.

    Examples
    --------
    >>> from bagbasis import MomentsEmbedding, SizeEmbedding
    >>> from bagbasis.core.declarations import joined_parameters
    >>> list(joined_parameters([SizeEmbedding, MomentsEmbedding]))
    ['out_of_box', 'box', 'dtype', 'covariance', 'standardize']
    """
    declared: dict[str, list[Parameter]] = {}
    for owner in owners:
        for name, parameter in parameters_of(owner).items():
            declared.setdefault(name, []).append(parameter)
    return {name: _joined(parameters) for name, parameters in declared.items()}


def _joined(parameters: Sequence[Parameter]) -> Parameter:
    first = parameters[0]
    accepted = [parameter.accepts for parameter in parameters if parameter.accepts is not None]
    texts = [parameter.summary for parameter in parameters if parameter.text]
    text = "; ".join(text for text in dict.fromkeys(texts) if not text.startswith("As in `"))
    accepts = reduce(or_, dict.fromkeys(accepted)) if accepted else None
    return Parameter(first.name, accepts, first.default, text)


def constraints_of(owner: Callable[..., Any]) -> dict[str, Constraint[Any]]:
    """Return the constraint of each declared parameter of a class or a function, by name.

    Examples
    --------
    >>> from bagbasis import MomentsEmbedding
    >>> from bagbasis.core import constraints_of
    >>> sorted(constraints_of(MomentsEmbedding))
    ['box', 'covariance', 'dtype', 'out_of_box', 'standardize']
    """
    known = parameters_of(owner).items()
    return {name: parameter.accepts for name, parameter in known if parameter.accepts is not None}


def constraint_of(annotation: object) -> Constraint[Any] | None:
    """Return the constraint of an annotation; None if it has none.

    ``Annotated`` carries a constraint. ``int``, ``float``, ``bool``, ``str``, ``None``, literals
    and unions of these types need no explicit constraint.

    Examples
    --------
    >>> from typing import Annotated
    >>> from bagbasis.core import Integer, constraint_of
    >>> constraint_of(Annotated[int, Integer(ge=1)])
    Integer(ge=1, le=None, even=False)
    """
    origin = get_origin(annotation)
    if origin is Annotated:
        inner, *more = get_args(annotation)
        if any(isinstance(member, type) and issubclass(member, _Unknown) for member in more):
            raise TypeError(f"a constraint of {annotation} is not imported")
        named = next((member for member in more if isinstance(member, Constraint)), None)
        if isinstance(named, Instance) and not named.name:
            return replace(named, name=(get_origin(inner) or inner).__name__)
        if named is None:
            return constraint_of(inner)
        return named | None_ if NoneType in get_args(inner) else named
    if origin in (Union, UnionType):
        members = [constraint_of(member) for member in get_args(annotation)]
        return None if None in members else reduce(or_, cast("list[Constraint[Any]]", members))
    if origin is Literal:
        choices = get_args(annotation)
        if choices == (False,):
            return False_
        return OneOf(*choices)
    return _PLAIN.get(annotation) if isinstance(annotation, (type, NoneType)) else None


def plain_signature(owner: Callable[..., Any]) -> inspect.Signature:
    """Return a signature whose annotations are plain types, for display.

    Examples
    --------
    >>> from bagbasis.core import plain_signature
    >>> from bagbasis.embeddings import SizeEmbedding
    >>> list(plain_signature(SizeEmbedding).parameters)
    ['out_of_box', 'box', 'dtype']
    """
    signature = inspect.signature(owner)
    space = _space(owner)
    shown = []
    for name, parameter in signature.parameters.items():
        of_field = is_dataclass(owner) and isinstance(owner, type) and not _has_own_init(owner)
        annotation = (
            _annotation(owner, name)  # type: ignore[arg-type]  # a class
            if of_field
            else _evaluated_or_text(parameter.annotation, space)
        )
        shown.append(parameter.replace(annotation=_without_constraints(annotation)))
    return signature.replace(parameters=shown)


_KNOWN: WeakKeyDictionary[Callable[..., Any], Mapping[str, Parameter]] = WeakKeyDictionary()


def _declared(owner: Callable[..., Any]) -> Iterator[Parameter]:
    kinds = reversed(owner.__mro__) if inspect.isclass(owner) else (owner,)
    texts = {key: text for kind in kinds for key, text in _texts_of(kind).items()}
    if not inspect.isclass(owner):
        yield from _of_function(owner, texts)
    elif _has_own_init(owner):
        yield from _of_function(owner.__init__, texts)
    elif is_dataclass(owner):
        yield from _of_fields(owner, texts)


def _has_own_init(owner: type) -> bool:
    """Return whether a class has a handwritten constructor, not one made from its fields."""
    for kind in owner.__mro__:
        if "__init__" in vars(kind):
            made = "__dataclass_fields__" in vars(kind)
            return kind is not object and not made
    return False


def _of_function(
    function: Any,  # noqa: ANN401 - a function or a constructor
    texts: Mapping[str, str],
) -> Iterator[Parameter]:
    space = _Names(_space(function))
    for name, parameter in inspect.signature(function).parameters.items():
        if name == "self" or parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        default = REQUIRED if parameter.default is parameter.empty else parameter.default
        annotation = parameter.annotation
        try:
            if isinstance(annotation, str):
                annotation = eval(annotation, {}, space)  # noqa: S307 - of our own source
            accepts = constraint_of(annotation)
        except (AttributeError, NameError, TypeError) as error:
            raise TypeError(f"{function.__qualname__}.{name}: {error}, at run time") from error
        yield Parameter(name, accepts, default, texts.get(name, ""))


def _of_fields(owner: type, texts: Mapping[str, str]) -> Iterator[Parameter]:
    for item in _own_first(owner):
        accepts = constraint_of(_annotation(owner, item.name))
        yield Parameter(item.name, accepts, default_of(item), texts.get(item.name, ""))


def _own_first(owner: type) -> list[Field[Any]]:
    """Return the fields that a constructor takes, in the order of its signature.

    Positional fields come first, then the fields of the class itself, then those of its bases.
    """
    known = {item.name: item for item in fields(owner) if item.init}
    order = [n for kind in owner.__mro__ for n in vars(kind).get("__annotations__", {})]
    positional = [name for name, item in known.items() if not item.kw_only]
    return [known[name] for name in dict.fromkeys([*positional, *order]) if name in known]


def default_of(item: Field[Any]) -> object:
    """Return the default of a field; `REQUIRED` if there is none."""
    if item.default_factory is not MISSING:
        return item.default_factory()
    return REQUIRED if item.default is MISSING else item.default


def _annotation(owner: type, name: str) -> object:
    """Return the annotation of a field, evaluated where it is declared."""
    for kind in owner.__mro__:
        text = vars(kind).get("__annotations__", {}).get(name)
        if text is None:
            continue
        try:
            space = vars(sys.modules[kind.__module__])
            return eval(text, dict(space), dict(vars(kind))) if isinstance(text, str) else text  # noqa: S307 - of our own source
        except NameError as error:
            raise TypeError(f"{kind.__qualname__}.{name}: {error}, at run time") from error
    raise TypeError(f"{owner.__qualname__} has no field {name!r}")


def _evaluated_or_text(annotation: object, space: Mapping[str, Any]) -> object:
    """Return the evaluated annotation, or its text if it cannot be evaluated at run time."""
    if not isinstance(annotation, str):
        return annotation
    try:
        return eval(annotation, dict(space))  # noqa: S307 - of our own source
    except (NameError, TypeError):
        return annotation


class _Unknown:
    """Base of classes that stand for those that only checkers import."""

    def __class_getitem__(cls, _: object) -> type:
        return cls


class _Names(dict[str, Any]):
    """The names of a module; a name that only checkers import stands for a class of that name."""

    def __missing__(self, name: str) -> type:
        if hasattr(builtins, name):
            raise KeyError(name)
        return type(name, (_Unknown,), {})


def _space(function: Any) -> Mapping[str, Any]:  # noqa: ANN401 - a function of any kind
    return cast("Mapping[str, Any]", getattr(inspect.unwrap(function), "__globals__", {}))


def _signature(owner: type) -> inspect.Signature:
    """Return the signature of a constructor made from fields; a class's own fields come first."""
    made = inspect.signature(owner.__init__)  # type: ignore[misc]  # of this class
    by_name = dict(made.parameters)
    order = ["self", *(item.name for item in _own_first(owner))]
    return made.replace(parameters=[by_name[name] for name in order])


def _without_constraints(annotation: object) -> object:
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _without_constraints(inner[0])
    if origin in (Union, UnionType):
        return reduce(or_, map(_without_constraints, inner))
    return annotation


class _Docstring(str):
    """A class's docstring that gets its entries' types and defaults when it is read.

    Entries of inherited parameters are added too. An import evaluates no annotations for them.

    ``cls.__doc__`` calls ``__get__``. `help` reads the dictionary of a class with a metaclass
    instead, and calls ``expandtabs`` of what it finds.
    """

    __slots__ = ("owner",)
    owner: type | None

    def __new__(cls, text: str, owner: type | None = None) -> _Docstring:
        made = super().__new__(cls, text)
        made.owner = owner
        return made

    def __reduce__(self) -> tuple[type[_Docstring], tuple[str]]:
        return _Docstring, (str.__str__(self),)

    def expandtabs(self, tabsize: SupportsIndex = 8) -> str:
        text = str.__str__(self) if self.owner is None else self.__get__(None, self.owner)
        return text.expandtabs(tabsize)

    def __get__(self, instance: object, owner: type) -> str:
        text = str.__str__(self)
        try:
            declared = parameters_of(owner)
            types = {name: (known.accepts, known.default) for name, known in declared.items()}
            return with_types(_with_inherited_entries(owner, text, declared), types)
        except TypeError:  # an annotation of another package cannot be evaluated
            return text


def _docstring(owner: Any) -> str:  # noqa: ANN401 - a class or a function
    """Return the docstring as it is written; empty if there is none."""
    docstring = vars(owner).get("__doc__") if inspect.isclass(owner) else owner.__doc__
    return str.__str__(docstring or "")


def _texts_of(owner: Any) -> dict[str, str]:  # noqa: ANN401 - a class or a function
    """Return the description of each parameter in a docstring, on one line."""
    entries = entries_of(_docstring(owner))
    return {name: " ".join(text.split()) for name, (_, text) in entries.items()}


def _with_inherited_entries(owner: type, docstring: str, known: Iterable[str]) -> str:
    """Return the docstring of a class with the entries of parameters that only bases describe."""
    described, inherited = entries_of(docstring), dict[str, tuple[str, str]]()
    annotations: dict[str, object] = {}
    for kind in reversed(owner.__mro__):
        own = vars(kind).get("__annotations__", {})
        for name in inherited.keys() & own.keys():
            type_text, text = inherited[name]
            names_default = re.search(r"\b(default|optional)\b", type_text)
            if own[name] != annotations.get(name) or (names_default and name in vars(kind)):
                inherited[name] = "", text  # this class may change the type
        annotations |= own
        inherited |= entries_of(_docstring(kind))
    missing = inherited.keys() - described.keys()
    return with_entries(docstring, {name: inherited[name] for name in known if name in missing})


__all__ = [
    "REQUIRED",
    "Parameter",
    "component",
    "constraint_of",
    "constraints_of",
    "documented",
    "frozen_component",
    "joined_parameters",
    "named_calls",
    "own_first",
    "parameters_of",
    "plain_signature",
    "with_fields_of",
]
