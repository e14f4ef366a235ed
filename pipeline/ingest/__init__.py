"""From tables, arrays and ``.npz`` files to a `BagStore`.

What reads tables is imported when it is first used: it needs ``pip install 'bagbasis[tables]'``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from ..errors import needing_extra
from .arrays import ingest_arrays, ingest_npz

if TYPE_CHECKING:
    from .anndata_cells import ingest_anndata
    from .catalogues import ingest_catalogue
    from .frames import ingest_frame
    from .images import ingest_images
    from .tables import TableIngest, ingest_tables

__all__ = [
    "TableIngest",
    "ingest_anndata",
    "ingest_arrays",
    "ingest_catalogue",
    "ingest_frame",
    "ingest_images",
    "ingest_npz",
    "ingest_tables",
]

_OF_TABLES = {
    "TableIngest": "tables",
    "ingest_anndata": "anndata_cells",
    "ingest_catalogue": "catalogues",
    "ingest_frame": "frames",
    "ingest_images": "images",
    "ingest_tables": "tables",
}


if not TYPE_CHECKING:  # a checker would take any name for one of ours

    def __getattr__(name: str) -> object:
        if name not in _OF_TABLES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        with needing_extra("tables", name):
            return getattr(import_module(f".{_OF_TABLES[name]}", __name__), name)
