"""New places of public names from before 1.0: modules, parameters, fields and config keys.

All old names work until 1.1: ``from bagbasis.monitoring import DriftDetector`` and
``evaluate(model, data=store)`` still work, and warn with the new name. The page *Stability* has
these tables for readers. Names without a successor are refused with what to write instead.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, NamedTuple, TypeVar

from .errors import ParameterError, warn_caller

_T = TypeVar("_T")

MOVED = {
    "bags": "",
    "bases": "embeddings",
    "clusters": "",
    "divergences": "densities",
    "errors": "",
    "evaluation": "models",
    "fitting": "models.fitting.checkpoints",
    "monitoring": "operations",
    "objectives": "hypotheses",
    "parameters": "core",
    "random_features": "embeddings",
    "registry": "operations",
    "registry.mlflow_models": "operations.registry.mlflow_models",  # what saved MLflow models name
    "retraining": "operations",
    "store": "",
    "tuning": "models",
}
"""Former modules and the modules that now have their public names, both below `bagbasis`."""

MOVED_NAMES = {
    "divergences.NystroemFeatures": "densities.PrecomputedNystroem",
    "execution.Progress": "execution.progress.Progress",
    "execution.Report": "execution.progress.Report",
    "retraining.Outcome": "operations.RoundResult",
}
"""Former public names that are called otherwise, or have left a module that is still there."""

RENAMED: Mapping[str, Mapping[str, str]] = {
    "evaluate": {"data": "X"},
    "judge_fit": {"store": "X"},
    "permutation_importance": {"data": "X"},
    "two_sample_test": {"memory": "correlation_length"},
    "KSD": {"memory": "correlation_length"},
    "KSDAggregate": {"memory": "correlation_length"},
    "tune": {"records": "checkpoints", "cache_url": "checkpoints"},
    "Retraining": {"checkpoint_url": "checkpoints"},
    "SequenceRegressor": {"checkpoint": "checkpoints"},
    "SequenceClassifier": {"checkpoint": "checkpoints"},
    "NextPointRegressor": {"checkpoint": "checkpoints"},
    "DeepSetsRegressor": {"checkpoint": "checkpoints"},
    "DeepSetsClassifier": {"checkpoint": "checkpoints"},
    "BagDensity": {"checkpoint": "checkpoints"},
    "TANDensity": {"checkpoint": "checkpoints"},
    "sample_distances": {"checkpoint": "checkpoints"},
    "divergence_blocks": {"checkpoint": "checkpoints"},
    "BagbasisSamples": {"checkpoint": "checkpoints"},
    "DriftDetector": {"alpha": "level", "standardise": "standardize"},
    "DriftGate": {"alpha": "level", "least_effect": "min_effect"},
    "DriftResult": {"n_points_a_bag": "points_per_bag"},
    "bags fit": {"checkpoint_url": "checkpoints"},
    "bags tune": {"cache_url": "checkpoints"},
    "bags retrain": {
        "checkpoint_url": "checkpoints",
        "drift.alpha": "drift.level",
        "drift.least_effect": "drift.min_effect",
    },
    "bags drift fit": {"alpha": "level", "standardise": "standardize"},
    "bags drift test": {"alpha": "level"},
    "bags test": {"null_law": "null", "memory": "correlation_length"},
    "bags test fit": {"null_law": "null", "n_permutations": "n_draws"},
}
"""Former parameters, fields and config keys and their current names, by owner.

A key of a section of a config is written with its section, as in ``--set``.
"""


class Gone(NamedTuple):
    """A former name without a current one.

    Attributes
    ----------
    instead
        Advice on what to write, in messages.
    kept_values
        Values for which this version does the same without the name; None for any value.
    """

    instead: str
    kept_values: tuple[object, ...] | None = ()

    def keeps(self, value: object) -> bool:
        """Return whether this version does what a value of the former name asked for."""
        return self.kept_values is None or value in self.kept_values


_DIRECT = (
    "this version does not have method='direct'; leave method out, which takes the same "
    "distances from coefficients, and fit saved models anew"
)
_METHOD = Gone(_DIRECT, ("fast", ["fast"]))
_POINTS = Gone(_DIRECT, None)  # of integration, which method="fast" did not use
GONE: Mapping[str, Mapping[str, Gone]] = {
    "HDDEmbedding": {"method": _METHOD, "n_integration": _POINTS},
    "HDDSpec": {"n_integration": Gone(_DIRECT, (None,)), "seed": _POINTS},
    "bags retrain": {
        "model.embedding.method": _METHOD,
        "model.embedding.n_integration": _POINTS,
    },
    "DoubleBasis": {"posterior_": Gone("model_.posterior")},
}
"""Former parameters, fields, attributes and config keys without a current name, by owner."""


def with_new_names(owner: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments or keys under their current names; a warning names each that was renamed.

    Parameters
    ----------
    owner : str
        Function, class or command. If it is not in `RENAMED`, the values are returned unchanged.
    values : mapping

    Raises
    ------
    ParameterError
        If a value is given under both its former and its current name.
    """
    return _renamed(owner, values, warned=True)


def today_names(owner: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return saved values under their current names, without a warning."""
    return _renamed(owner, values, warned=False)


def without_gone(owner: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return saved values or keys of a config without the names of `GONE`.

    Raises
    ------
    ParameterError
        If this version does not do what a value asked for. The message says what to write instead.
    """
    gone = GONE.get(owner, {})
    for name in values.keys() & gone.keys():
        if not gone[name].keeps(values[name]):
            raise ParameterError(gone[name].instead)
    return {name: value for name, value in values.items() if name not in gone}


def _renamed(
    owner: str, values: Mapping[Any, Any], section: str = "", *, warned: bool
) -> dict[Any, Any]:
    """Return the values of a section, such as "drift.", under their current names.

    A key that is not text, as YAML's ``1: 2``, stays for whoever checks the values.
    """
    renamed = RENAMED.get(owner, {})
    known: dict[str, str] = {}  # the given names, by current name
    current: dict[Any, Any] = {}
    for name, value in values.items():
        if not isinstance(name, str):
            current[name] = value
            continue
        key = f"{section}{name}"
        new = renamed.get(key, key)
        if warned and new in known:
            first, second = sorted((known[new], key), key=renamed.__contains__)
            raise ParameterError(
                f"{owner}: {first} and {second} are two names of the same value; give {new} alone"
            )
        known[new] = key
        if warned and key != new:
            _warn_of_name(owner, key, new)
        is_section = any(old.startswith(f"{key}.") for old in renamed)
        current[new.removeprefix(section)] = (
            _renamed(owner, value, f"{key}.", warned=warned)
            if is_section and isinstance(value, Mapping)
            else value
        )
    return current


def renamed_fields(cls: type[_T]) -> type[_T]:
    """Let a dataclass accept the names of `RENAMED` in its constructor and as attributes."""
    init: Callable[..., None] = cls.__init__

    @wraps(init)
    def __init__(self: object, *args: object, **kwargs: object) -> None:  # noqa: N807 - it is one
        init(self, *args, **with_new_names(cls.__name__, kwargs))

    cls.__init__ = __init__  # type: ignore[method-assign]
    for old, new in RENAMED[cls.__name__].items():
        setattr(cls, old, property(_read_by_old_name(old, new)))
    return cls


def _read_by_old_name(old: str, new: str) -> Callable[[Any], Any]:
    def read(instance: Any) -> Any:  # noqa: ANN401 - of any class and field
        _warn_of_name(type(instance).__name__, old, new)
        return getattr(instance, new)

    return read


def _warn_of_name(owner: str, old: str, new: str) -> None:
    warn_caller(FutureWarning(f"{owner}: {old} is now called {new} (the old name goes in 1.1)"))


def moved_name(module: str, name: str) -> object:
    """Return what a former name of a module stands for, with a warning that names it.

    Parameters
    ----------
    module, name : str
        Former module, below `bagbasis`, and the name in it.

    Raises
    ------
    AttributeError
        If the module had no such public name.
    """
    package = __name__.partition(".")[0]
    if f"{module}.{name}" not in MOVED_NAMES:
        raise AttributeError(f"module '{package}.{module}' has no attribute {name!r}")
    place, _, new = MOVED_NAMES[f"{module}.{name}"].rpartition(".")
    warn_caller(
        FutureWarning(
            f"{package}.{module}.{name} is now {package}.{place}.{new}: import it from there (the "
            "old name goes in 1.1)"
        )
    )
    value = getattr(importlib.import_module(f"{package}.{place}"), new)
    setattr(sys.modules[f"{package}.{module}"], name, value)  # a name is warned of once
    return value


class MovedModules:
    """Import hook that finds former modules at their new place, if no other finder knows them.

    It has the methods of a finder and of a loader. Their base classes of ``importlib.abc`` are not
    imported: that would take as long as the rest of ``import bagbasis``.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a moved module, or None."""
        package, _, name = fullname.partition(".")
        if package != __name__.partition(".")[0] or name not in MOVED:
            return None
        return ModuleSpec(fullname, self)  # type: ignore[arg-type]  # a loader by its methods

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the module at the new place, with a warning that names it."""
        package, _, name = spec.name.partition(".")
        place = f"{package}.{MOVED[name]}".rstrip(".")
        warnings.warn(
            f"{spec.name} is now part of {place}: import from there (the old name goes in 1.1)",
            FutureWarning,
            stacklevel=2,
        )
        old, new = ModuleType(spec.name), importlib.import_module(place)
        module = spec.name.removeprefix(f"{package}.")

        def attribute_of(name: str) -> object:
            if f"{module}.{name}" in MOVED_NAMES:
                return moved_name(module, name)
            return getattr(new, name)

        old.__dict__.update(
            __doc__=new.__doc__,
            __path__=[],
            __getattr__=attribute_of,
            __dir__=lambda: dir(new),
        )
        return old

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: the names are those of the new place."""


def find_moved_modules() -> None:
    """Install the import hook for former modules."""
    if not any(isinstance(finder, MovedModules) for finder in sys.meta_path):
        sys.meta_path.append(MovedModules())
