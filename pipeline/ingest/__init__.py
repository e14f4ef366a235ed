"""From tables, arrays and ``.npz`` files to a `BagStore`.

What reads tables is imported when it is first used: it needs ``pip install 'bagbasis[tables]'``.
"""

import lazy_loader

from ..core.errors import needing_extra

_import, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> object:
    with needing_extra("tables", name):
        return _import(name)
