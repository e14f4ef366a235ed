"""From tables, arrays and ``.npz`` files to a `BagStore`.

What reads tables is imported when it is first used: it needs ``pip install 'bagbasis[tables]'``.
"""

import lazy_loader

from ..core.errors import needing_extra

_import, __dir__, _ = lazy_loader.attach_stub(__name__, __file__)

__all__ = [
    "TableIngest",
    "ingest_anndata",
    "ingest_arrays",
    "ingest_catalogue",
    "ingest_fcs",
    "ingest_frame",
    "ingest_images",
    "ingest_npz",
    "ingest_patches",
    "ingest_tables",
]


def __getattr__(name: str) -> object:
    with needing_extra("tables", name):
        return _import(name)
