"""Parameters that several ingests share: types, constraints and `StoreSettings`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any

from ..core import Integer, ListOf, MappingOf, None_, OneOf, Open, Real, Url, UrlOrPath
from ..core.annotations import Progress
from ..data.bags.box import BOUNDS, Box
from .registry import FileFormat

_FILES = Url | ListOf(Url)
BOX_OR_QUANTILE = Open(
    'one (lo, hi) per dimension, or {"quantile": share}',
    BOUNDS | MappingOf(OneOf("quantile"), Real(ge=0, lt=0.5)) | None_,
)
MODE = OneOf("create", "append", "overwrite")

Files = Annotated[UrlOrPath | Sequence[UrlOrPath], _FILES]
Mode = Annotated[str, MODE]
KnownIds = Annotated[str, OneOf("refuse", "skip")]
ChunkPoints = Annotated[int, Integer(1)]


@dataclass(frozen=True)
class StoreSettings(FileFormat):
    """Base of the formats that write whole bags, with what they all take.

    Parameters
    ----------
    box
        Range of each coordinate, as (lo, hi). None: the range of the points without outliers.
    dtype
        Data type of the stored points, see `BagStore.create`. None: float32, or float64 if float32
        would merge points.
    mode
        How to treat an existing store: "create" raises an error, "append" adds the bags atomically
        and keeps the box and the classes, "overwrite" replaces the store.
    overwrite
        Whether to replace an existing store, like mode="overwrite".
    chunk_points
        Number of points in a stored chunk. None: as many points as fit in 2 MiB.
    progress
        Function that is called with the number of points or files done and the number of all.
    """

    _: KW_ONLY
    box: Box | Sequence[Sequence[float]] | None = None
    dtype: Any = None
    mode: Mode = "create"
    overwrite: bool = False
    chunk_points: ChunkPoints | None = None
    progress: Progress | None = None
