"""Types and constraints of parameters that several ingests share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from ..core import Integer, ListOf, MappingOf, None_, OneOf, Open, Real, Url, UrlOrPath
from ..data.bags.box import BOUNDS

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
