"""Parameters that several ingests share: types, constraints and `StoreSettings`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Annotated

from numpy.typing import DTypeLike

from ..core import Integer, ListOf, MappingOf, None_, OneOf, Open, Real, Url, UrlOrPath, documented
from ..core.annotations import Progress
from ..data.bags.box import BOUNDS, Box
from .registry import FileFormat

_FILES = Url | ListOf(Url)
BOX_OR_QUANTILE = Open(
    'one (lo, hi) per dimension, or {"quantile": share}',
    BOUNDS | MappingOf(OneOf("quantile"), Real(ge=0, lt=0.5)) | None_,
)
# numpy dtypes are accepted, too; `check_creation` refuses others
DTYPE = Open("a dtype", OneOf("float32", "float64", "uint16", "uint8") | None_)
MODE = OneOf("create", "append", "overwrite")

BoxOrQuantile = Annotated[
    Box | Sequence[Sequence[float]] | Mapping[str, float] | None, BOX_OR_QUANTILE
]
Files = Annotated[UrlOrPath | Sequence[UrlOrPath], _FILES]
Mode = Annotated[str, MODE]
KnownIds = Annotated[str, OneOf("refuse", "skip")]


@documented
@dataclass(frozen=True)
class StoreSettings(FileFormat):
    """Base of the formats, with what they all take about the store.

    Parameters
    ----------
    box : list of (lo, hi) or {"quantile": share}
        Range of each coordinate, which is scaled to [0, 1] before projection. Points may lie
        outside. None: the range of the points, widened by 1 % on each side. So that a few outliers
        do not stretch the box, it is cut near the quantiles .001 and .999: it ends at most a
        quarter of their distance beyond them. {"quantile": q} cuts near the quantiles q and 1 - q.
        {"quantile": 0} takes the whole range, with all outliers.
    dtype : {"float32", "float64", "uint16", "uint8"}
        Data type of the stored points, see `BagStore.create`. None: float32, or float64 if float32
        would merge points, such as the Julian dates of one night.
    mode
        How to treat an existing store: "create" raises an error, "append" adds the bags atomically
        and keeps the box and the classes, "overwrite" replaces the store.
    overwrite
        Whether to replace an existing store, like mode="overwrite".
    chunk_points
        Number of points in a stored chunk. None: as many points as fit in 2 MiB.
    progress : callable
        Function that is called with the number of points or files done and the number of all.
    """

    _: KW_ONLY
    box: BoxOrQuantile = None
    dtype: Annotated[DTypeLike | None, DTYPE] = None
    mode: Mode = "create"
    overwrite: bool = False
    chunk_points: Annotated[int, Integer(1)] | None = None
    progress: Progress | None = None
