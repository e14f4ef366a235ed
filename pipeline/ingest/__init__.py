"""From tables, arrays and ``.npz`` files to a `BagStore`.

The readers of tables are imported when they are first used. They need ``pip install
'bagbasis[tables]'``.
"""

from ..core.lazy import attach_with_extra

__getattr__, __dir__, __all__ = attach_with_extra("tables", __name__, __file__)
