"""Types and constraints of parameters that several ingests share."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from ..core import Function, Integer, ListOf, MappingOf, None_, OneOf, Open, Real, Text, Url
from ..data.bags.box import BOUNDS
from ..execution.progress import Progress

SourcePath = str | os.PathLike[str]
"""A path or a URL."""

_FILES = Url | ListOf(Url)
BOX_OR_QUANTILE = Open(
    'one (lo, hi) per dimension, or {"quantile": share}',
    BOUNDS | MappingOf(OneOf("quantile"), Real(ge=0, lt=0.5)) | None_,
)
MODE = OneOf("create", "append", "overwrite")

Files = Annotated[SourcePath | Sequence[SourcePath], _FILES]
Place = Annotated[SourcePath, Url]
Mode = Annotated[str, MODE]
KnownIds = Annotated[str, OneOf("refuse", "skip")]
TextList = Annotated[Sequence[str], ListOf(Text)]
ReadAs = Annotated[Mapping[str, Any], MappingOf(Text, Open())]
ChunkPoints = Annotated[int, Integer(1)]
Reports = Annotated[Progress, Function]
