"""Neural networks for sequences, for densities in many dimensions, and for bags.

The package needs ``pip install 'bagbasis[neural]'``, and no other package imports it. It uses JAX
on the CPU, Optax for the optimisation, and Equinox, whose networks are frozen dataclasses of
arrays. Flax would bring its own file format and a dozen packages. A GPU is used if JAX's GPU extras
are installed.
"""

import lazy_loader

from ..core.errors import needing_extra

_import, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> object:
    with needing_extra("neural", name):
        return _import(name)
