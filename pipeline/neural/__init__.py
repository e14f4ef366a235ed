"""Networks: sequences, densities of points in many dimensions, and learned embeddings of bags.

No other package imports this one. It needs ``pip install 'bagbasis[neural]'``: JAX on the CPU,
Optax for the steps, and Equinox, whose networks are frozen dataclasses of arrays (Flax would bring
a file format of its own and a dozen packages). A GPU is used where JAX's own extras are installed.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..core.errors import needing_extra

if TYPE_CHECKING:
    from .bag_density import BagDensity
    from .loading import load_network
    from .sequences import NextPointRegressor, SequenceClassifier, SequenceRegressor
    from .set_models import DeepSetsClassifier, DeepSetsRegressor
    from .tan import TANDensity

__all__ = [
    "BagDensity",
    "DeepSetsClassifier",
    "DeepSetsRegressor",
    "NextPointRegressor",
    "SequenceClassifier",
    "SequenceRegressor",
    "TANDensity",
    "load_network",
]

# The module of each name, imported when the name is first used.
_MODULES = {
    "bag_density": ("BagDensity",),
    "loading": ("load_network",),
    "sequences": ("NextPointRegressor", "SequenceClassifier", "SequenceRegressor"),
    "set_models": ("DeepSetsClassifier", "DeepSetsRegressor"),
    "tan": ("TANDensity",),
}


if not TYPE_CHECKING:  # a checker would take any name for one of ours

    def __getattr__(name: str) -> Any:
        for module, names in _MODULES.items():
            if name in names:
                with needing_extra("neural", name):
                    value = getattr(import_module(f".{module}", __name__), name)
                globals()[name] = value
                return value
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
