"""From tables, arrays and ``.npz`` files to a `BagStore`.

The readers of tables are imported when they are first used. They need ``pip install
'bagbasis[tables]'``.
"""

import lazy_loader

from ..core.errors import needing_extra

_import, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> object:
    with needing_extra("tables", name):
        return _import(name)
