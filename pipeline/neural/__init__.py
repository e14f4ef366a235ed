"""Networks: sequences, densities of points in many dimensions, and learned embeddings of bags.

No other package imports this one. It needs ``pip install 'bagbasis[neural]'``: JAX on the CPU,
Optax for the steps, and Equinox, whose networks are frozen dataclasses of arrays (Flax would bring
a file format of its own and a dozen packages). A GPU is used where JAX's own extras are installed.
"""

import lazy_loader

from ..core.errors import needing_extra

_import, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> object:
    with needing_extra("neural", name):
        return _import(name)
