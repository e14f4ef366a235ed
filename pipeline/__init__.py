"""Learning from bags: sets of points with one label each, from a laptop to a cluster."""

# A public name is imported when it is first used, so that ``bags --help`` or a refused config does
# not wait for Dask, Numba and scikit-learn.
from pathlib import Path

import lazy_loader

from .core import threads  # noqa: F401 - before BLAS is loaded
from .core.moved import find_moved_modules

find_moved_modules()

__getattr__, __dir__, _names = lazy_loader.attach_stub(__name__, __file__)
# ``import *`` takes no packages, some of which need extras
__all__ = sorted({*_names} - {path.name for path in Path(__file__).parent.iterdir()})

__version__ = "1.0.0rc1"
