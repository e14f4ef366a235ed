"""Base of the ingests in which each file is a bag: slides and cytometry."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any, ClassVar

import pandas as pd
from numpy.typing import NDArray
from typing_extensions import override

from ...core import Text, TextList, TextMapping, UrlOrPath, documented
from ...data.store.store import BagStore
from ..arrays import check_mode, ingest_arrays
from ..batches import classes_of
from ..calls import check_known_ids
from ..declared import Files, KnownIds, StoreSettings
from .folders import bag_files, targets_of_files


@documented
@dataclass(frozen=True)
class FileIngest(StoreSettings):
    """Make a store from files, or append to one. Each file is a bag, which `bags` reads.

    Files of a folder are read if they have one of the ``endings``.

    Parameters
    ----------
    points
        A folder, a glob or files, at a path or any URL that fsspec supports.
    url
        The store to write.
    target_table
        Table with one row per file. Files without a row are not labelled.
    target_id_column
        Column of the target table with the file names, with or without the ending.
    targets
        Columns of the target table to store. None: all columns.
    read
        Options for reading a CSV target_table, as in `TableIngest`.
    known_ids
        As for `TableIngest`.
    """

    unit: ClassVar[str] = "files"

    points: Files
    url: UrlOrPath
    _: KW_ONLY
    target_table: UrlOrPath | Mapping[str, Any] | pd.DataFrame | None = None
    target_id_column: Annotated[str, Text] = "file"
    targets: TextList | None = None
    read: TextMapping | None = None
    known_ids: KnownIds = "refuse"

    def __post_init__(self) -> None:
        """Raise ParameterError for invalid or contradictory parameters."""
        super().__post_init__()
        check_mode(self.mode, self.overwrite, box=self.box, chunk_points=self.chunk_points)
        check_known_ids(self.known_ids, self.mode)

    @abstractmethod
    def bags(self, urls: Sequence[str]) -> Iterator[NDArray[Any] | pd.DataFrame]:
        """Yield the points of each file, shape (n, n_dims); columns are names of coordinates."""

    @override
    def run(self) -> BagStore:
        files = bag_files(self.points, self.endings)
        targets, stored, types = self.targets, set[str](), dict[str, str]()
        if self.mode == "append":
            store = BagStore.open(self.url)
            stored = {str(name) for name in store.ids().tolist()}
            classes = store.meta.class_names
            types = {n: "class" if n in classes else "number" for n in store.target_names}
            if self.target_table is not None and targets is None:
                targets = store.target_names
            if self.known_ids == "skip":
                files = {name: url for name, url in files.items() if name not in stored}
            if not files:
                return store
        labels = targets_of_files(
            *(list(files), self.target_table, self.target_id_column, targets, stored),
            target_types=types,
            read=self.read,
        )
        return ingest_arrays(
            self._counted([*files.values()]),
            self.url,
            targets=labels,
            class_names=None if self.mode == "append" else classes_of(labels),
            ids=files,
            box=self.box,
            dtype=self.dtype,
            mode=self.mode,
            overwrite=self.overwrite,
            chunk_points=self.chunk_points,
        )

    def _counted(self, urls: Sequence[str]) -> Iterator[NDArray[Any] | pd.DataFrame]:
        """Yield the points of each file, and report the number of files read."""
        for n_read, points in enumerate(self.bags(urls), 1):
            yield points
            if self.progress is not None:
                self.progress(n_read, len(urls))
