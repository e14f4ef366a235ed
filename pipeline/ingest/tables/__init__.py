"""Long tables in files to a store: read and checked by DuckDB, sorted here or on a cluster."""

from .arrow_files import NamedBatches, plain_reader, reader_of, write_batches, write_parquet
from .database import Database
from .engines import SORT_BYTES, LocalEngine, spill_folder
from .files import is_list
from .ingest import ColumnNames, ColumnsLike, TableIngest, ingest_tables
from .labels import read_labels
from .passes import Tally
from .values import names_of

__all__ = [
    "SORT_BYTES",
    "ColumnNames",
    "ColumnsLike",
    "Database",
    "LocalEngine",
    "NamedBatches",
    "TableIngest",
    "Tally",
    "ingest_tables",
    "is_list",
    "names_of",
    "plain_reader",
    "read_labels",
    "reader_of",
    "spill_folder",
    "write_batches",
    "write_parquet",
]
