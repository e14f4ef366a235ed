"""From tables, arrays and ``.npz`` files to a `BagStore`."""

from .arrays import ingest_arrays, ingest_npz
from .tables import TableIngest, ingest_tables

__all__ = ["TableIngest", "ingest_arrays", "ingest_npz", "ingest_tables"]
