"""Where public names of versions before 1.0 are now: one table, kept until 1.1.

``from bagbasis.monitoring import DriftDetector`` still works, and warns with the new place.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

MOVED = {
    "bags": "",
    "bases": "embeddings",
    "clusters": "",
    "divergences": "densities",
    "errors": "",
    "evaluation": "models",
    "monitoring": "operations",
    "objectives": "hypotheses",
    "random_features": "embeddings",
    "registry": "operations",
    "registry.mlflow_models": "operations.registry.mlflow_models",  # what saved MLflow models name
    "retraining": "operations",
    "store": "",
    "tuning": "models",
}
"""Modules of before, and the ones that hand on their public names, both below `bagbasis`."""


class MovedModules(MetaPathFinder, Loader):
    """Finds a module of before at its new place; asked only for what no other finder knows."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a moved module, or None."""
        package, _, name = fullname.partition(".")
        if package != __name__.partition(".")[0] or name not in MOVED:
            return None
        return ModuleSpec(fullname, self)

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
        old.__dict__.update(
            __doc__=new.__doc__,
            __path__=[],
            __getattr__=lambda attribute: getattr(new, attribute),
            __dir__=lambda: dir(new),
        )
        return old

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: the names are those of the new place."""


def find_moved_modules() -> None:
    """Let imports of modules of before find what they have become."""
    if not any(isinstance(finder, MovedModules) for finder in sys.meta_path):
        sys.meta_path.append(MovedModules())
