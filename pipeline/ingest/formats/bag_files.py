"""Ingest of files of which each is a bag: what slides and cytometry have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from numpy.typing import NDArray

from ...core import Table
from ...core.parameters.ingest import FILES
from ...data.bags.box import Box
from ...data.store.store import BagStore
from ...execution.progress import Progress
from ..arrays import check_mode, ingest_arrays
from ..calls import check_known_ids
from .folders import Source, bag_files, targets_of_files

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class FileIngest:
    """Make a store of files, or append to one: a file is a bag. `bags` reads them.

    Attributes
    ----------
    ENDINGS : tuple of str
        Endings of the files that are read from a folder.
    """

    PARAMETERS: ClassVar[Table] = FILES
    ENDINGS: ClassVar[tuple[str, ...]]

    points: Source | Sequence[Source]
    url: Source
    _: KW_ONLY
    target_table: Source | Mapping[str, Any] | pd.DataFrame | None = None
    target_id_column: str = "file"
    targets: Sequence[str] | None = None
    read: Mapping[str, Any] | None = None
    box: Box | Sequence[Sequence[float]] | None = None
    dtype: Any = None
    mode: str = "create"
    overwrite: bool = False
    known_ids: str = "refuse"
    chunk_points: int | None = None
    progress: Progress | None = None

    def __post_init__(self) -> None:
        """Refuse parameters that make no sense, alone or together; ParameterError names them."""
        for name, constraint in self.PARAMETERS.items():
            object.__setattr__(self, name, constraint.check(name, getattr(self, name)))
        check_mode(self.mode, self.overwrite, box=self.box, chunk_points=self.chunk_points)
        check_known_ids(self.known_ids, self.mode)

    @abstractmethod
    def bags(self, urls: Sequence[str]) -> Iterator[NDArray[Any]]:
        """Yield the points of each file, shape (n, n_dims)."""

    def run(self) -> BagStore:
        """Make the store, or append to it: all files, or none."""
        files = bag_files(self.points, self.ENDINGS)
        targets, stored, types = self.targets, set[str](), dict[str, str]()
        if self.mode == "append":
            kept = BagStore.open(self.url)
            stored = {str(name) for name in kept.ids().tolist()}
            classes = kept.meta.class_names
            types = {n: "class" if n in classes else "number" for n in kept.target_names}
            if self.target_table is not None and targets is None:
                targets = kept.target_names
            if self.known_ids == "skip":
                files = {name: url for name, url in files.items() if name not in stored}
            if not files:
                return kept
        labels = targets_of_files(
            *(list(files), self.target_table, self.target_id_column, targets, stored),
            target_types=types,
            read=self.read,
        )
        return ingest_arrays(
            self._counted([*files.values()]),
            self.url,
            targets=labels,
            ids=files,
            box=self.box,
            dtype=self.dtype,
            mode=self.mode,
            overwrite=self.overwrite,
            chunk_points=self.chunk_points,
        )

    def _counted(self, urls: Sequence[str]) -> Iterator[NDArray[Any]]:
        """Yield the points of each file; say how many files are behind."""
        for n_read, points in enumerate(self.bags(urls), 1):
            yield points
            if self.progress is not None:
                self.progress(n_read, len(urls))
