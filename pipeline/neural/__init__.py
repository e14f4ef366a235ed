"""Neural networks for sequences, for densities in many dimensions, and for bags.

The package needs ``pip install 'bagbasis[neural]'``, and no other package imports it. It uses JAX
on the CPU, Optax for the optimisation, and Equinox, whose networks are frozen dataclasses of
arrays. Flax would bring its own file format and a dozen packages. A GPU is used if JAX's GPU extras
are installed.
"""

from ..core.lazy import attach_with_extra

__getattr__, __dir__, __all__ = attach_with_extra("neural", __name__, __file__)
