"""From tables, arrays and ``.npz`` files to a `BagStore`."""

from .anndata_cells import ingest_anndata
from .arrays import ingest_arrays, ingest_npz
from .frames import ingest_frame
from .tables import TableIngest, ingest_tables

__all__ = [
    "TableIngest",
    "ingest_anndata",
    "ingest_arrays",
    "ingest_frame",
    "ingest_npz",
    "ingest_tables",
]
