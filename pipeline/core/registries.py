"""`ComponentRegistry`: components of one kind by name, from this and other packages."""

from __future__ import annotations

import importlib
import pkgutil
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from threading import RLock
from typing import Any, Generic, TypeVar

from typing_extensions import override

from .constraints import Constraint, UnfitError
from .declarations import documented
from .errors import ParameterError, closest, shown, warn
from .saved import UnknownComponentError

_T = TypeVar("_T")
K = TypeVar("K")


class ComponentRegistry(Mapping[str, type[_T]], Generic[_T]):
    """Components of one kind by name, in alphabetical order.

    A component registers itself when its module is imported. Modules of this package are found by
    searching ``packages``. Another package names its components in the entry-point group
    ``group``::

        [project.entry-points."bagbasis.embeddings"]
        wavelets = "my_package.wavelets:WaveletEmbedding"

    Modules are imported when an unregistered name is looked up, or when all names are requested.
    Modules of other packages are imported last.

    Parameters
    ----------
    kind
        Name of a component in messages: "embedding".
    group
        Entry-point group of other packages.
    packages
        Packages of bagbasis whose modules and sub-packages are searched, except kernels.

    Examples
    --------
    >>> from bagbasis.embeddings import EMBEDDINGS
    >>> 'moments' in EMBEDDINGS, EMBEDDINGS['moments'].__name__
    (True, 'MomentsEmbedding')
    """

    def __init__(self, kind: str, group: str, *packages: str) -> None:
        self.kind = kind
        self.group = group
        self._packages = packages
        self._known: dict[str, type[_T]] = {}
        self._short: dict[str, tuple[str, dict[str, Any]]] = {}
        self._lock = RLock()
        self._is_searched = self._has_plugins = False

    def add(
        self, name: str, cls: type[_T], short_names: Mapping[str, Mapping[str, Any]] | None = None
    ) -> None:
        """Register a class under a name; its docstring gets the types of its parameters.

        Parameters
        ----------
        name, cls
        short_names
            Further names, and the class parameters that each of them stands for.

        Raises
        ------
        ParameterError
            If another class has this name.
        """
        former = self._known.get(name)
        if former is not None and _place(former) != _place(cls):
            raise ParameterError(
                f"two {self.kind}s are called {name!r}: {_place(former)} and {_place(cls)}; rename "
                "one of them"
            )
        self._known[name] = documented(cls)
        for short, values in (short_names or {}).items():
            self._short[short] = name, dict(values)

    @property
    def short_names(self) -> dict[str, tuple[str, dict[str, Any]]]:
        """The name and the parameters that each short name stands for."""
        self._find(None)
        return dict(self._short)

    @property
    def own(self) -> dict[str, type[_T]]:
        """The components of this package by name; other packages are not searched."""
        self._search()
        ours = __package__.partition(".")[0]
        return {
            name: cls
            for name, cls in sorted(self._known.items())
            if cls.__module__.partition(".")[0] == ours
        }

    def make(self, name: str, **parameters: Any) -> _T:  # noqa: ANN401 - of any component
        """Make a component by its name or short name, with these parameters and its defaults."""
        self._find(name)
        kind, values = self._short.get(name, (name, {}))
        return self[kind](**{**values, **parameters})

    def register(self, cls: type[K]) -> type[K]:
        """Register a class under its attribute ``name``; can be used as a decorator.

        Raises
        ------
        ParameterError
            If another class has this name.

        Examples
        --------
        >>> from bagbasis.core import ComponentRegistry
        >>> shapes = ComponentRegistry('shape', 'my_package.shapes')
        >>> @shapes.register
        ... class Circle:
        ...     name = 'circle'
        >>> shapes['circle'] is Circle
        True
        """
        self.add(cls.name, cls)  # type: ignore[attr-defined, arg-type]  # a named component
        return cls

    def name_of(self, cls: type) -> str | None:
        """Return the name of a registered class; None for another class."""
        return next((name for name, known in self._known.items() if known is cls), None)

    def check(self, parameter: str, name: object) -> type[_T]:
        """Return the class of a name, which is not a short one.

        Raises
        ------
        ParameterError
            If there is no such component. The message names the parameter, the nearest name, and
            all names.
        """
        if isinstance(name, str) and name in self:
            return self[name]
        hint = closest(name, list(self)) if isinstance(name, str) else ""
        raise ParameterError(f"{parameter} is {shown(name)}{hint}; expected one of {list(self)}")

    def saved(self, name: str) -> type[_T]:
        """Return the class of a name or short name in saved data.

        Raises
        ------
        UnknownComponentError
            If nothing registers the name: another package did, or a newer version.
        """
        self._find(name)
        kind, _ = self._short.get(name, (name, {}))
        if kind not in self:
            raise UnknownComponentError(self.kind, name)
        return self[kind]

    def __getitem__(self, name: str) -> type[_T]:
        self._find(name)
        return self._known[name]

    def __contains__(self, name: object) -> bool:
        self._find(name)
        return name in self._known

    def __iter__(self) -> Iterator[str]:
        self._find(None)
        return iter(sorted(self._known))

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def __len__(self) -> int:
        self._find(None)
        return len(self._known)

    def _find(self, name: object) -> None:
        """Import the modules that may register a name; all modules for None."""
        if name in self._known or name in self._short or self._has_plugins:
            return
        with self._lock:
            self._search()
            if name not in self._known and name not in self._short and not self._has_plugins:
                self._has_plugins = True
                for entry in sorted(entry_points(group=self.group), key=lambda entry: entry.name):
                    self._load(entry)

    def _search(self) -> None:
        """Import the modules of this package, once."""
        with self._lock:
            if not self._is_searched:
                self._is_searched = True  # first: a module may ask for others while it is imported
                for package in self._packages:
                    _import_modules(package)

    def _load(self, entry: EntryPoint) -> None:
        """Import the component of another package; warn if it cannot be used."""
        owner = entry.dist.name if entry.dist else "another package"
        where = f"{self.kind} {entry.name!r} of {owner} ({entry.value})"
        try:
            loaded = entry.load()
        except Exception as error:  # whatever another package raises, ours go on
            warn(f"{where} cannot be imported: {error}; update or uninstall {owner}")
            return
        if self._known.get(entry.name) is not loaded:
            warn(f"{where} is not registered under this name; it is left out")


class _WordOf(Constraint[str]):
    """One of some words, which depend on the registered components."""

    @property
    @abstractmethod
    def choices(self) -> tuple[str, ...]:
        """All accepted words."""

    @override
    def choices_of_text(self) -> Iterable[str]:
        return self.choices

    @override
    def words(self, name: str) -> str:
        return f"one of {list(self.choices)}"


@dataclass(frozen=True)
class NameIn(_WordOf):
    """The name of a registered component, or one of some other words.

    Examples
    --------
    >>> from bagbasis.core import NameIn
    >>> from bagbasis.embeddings import EMBEDDINGS
    >>> NameIn(EMBEDDINGS).check('embedding', 'moments')
    'moments'
    """

    registry: ComponentRegistry[Any]
    others: tuple[str, ...] = ()

    @property
    @override
    def choices(self) -> tuple[str, ...]:
        return (*self.registry, *self.registry.short_names, *self.others)

    @override
    def take(self, value: object) -> str:
        if isinstance(value, str) and (
            value in self.others or value in self.registry or value in self.registry.short_names
        ):
            return str.__str__(value)
        raise UnfitError


@dataclass(frozen=True)
class ChoiceOf(_WordOf):
    """One of some words, or a value that a class attribute of registered components has.

    Examples
    --------
    >>> from bagbasis.core import ChoiceOf
    >>> from bagbasis.models.fitting.solver import SOLVERS
    >>> ChoiceOf(SOLVERS, 'choice', ('auto',)).check('solver', 'cg')
    'cg'
    """

    registry: ComponentRegistry[Any]
    attribute: str
    others: tuple[str, ...] = ()

    @property
    @override
    def choices(self) -> tuple[str, ...]:
        # words of components of this package come first
        kinds = [*self.registry.own.values(), *self.registry.values()]
        return tuple(
            dict.fromkeys([*self.others, *(getattr(kind, self.attribute) for kind in kinds)])
        )

    @override
    def take(self, value: object) -> str:
        if isinstance(value, str) and (value in self.others or value in self.choices):
            return str.__str__(value)
        raise UnfitError


def _import_modules(package: str) -> None:
    """Import the modules of a package and of its sub-packages, without kernels and stubs."""
    folder = importlib.import_module(package)
    for module in pkgutil.iter_modules(folder.__path__):
        if module.name.startswith("_") or module.name.endswith("kernels"):
            continue
        name = f"{package}.{module.name}"
        if module.ispkg:
            _import_modules(name)
        else:
            importlib.import_module(name)


def _place(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"
