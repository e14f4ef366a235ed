"""From tables, arrays and ``.npz`` files to a `BagStore`."""

from .anndata_cells import ingest_anndata
from .arrays import ingest_arrays, ingest_npz
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
