"""bagbasis: learning from bags (sample sets) at cluster scale.

A public name is imported when it is first used, so that ``bags --help`` or a refused config does
not wait for Dask, Numba and scikit-learn.
"""

import lazy_loader

from . import threads  # noqa: F401 - before BLAS is loaded

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

__version__ = "1.0.0rc1"
