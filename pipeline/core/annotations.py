"""Declared types that components of several packages share."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

from .constraints import Function, OneOf, Open, Seed, Text, Url
from .containers import ListOf, MappingOf

RandomSeed = Annotated[int, Seed]
Precision = Annotated[str, OneOf("float32", "float64")]
Progress = Annotated[Callable[[int, int], None], Function]
"""Function that is called with the number of units done and of all units (points, bags, …)."""

UrlOrPath = Annotated[str | os.PathLike[str], Url]
TextList = Annotated[str | Sequence[str], ListOf(Text, or_one=True)]
TextOrList = Annotated[str | Sequence[str], Text | ListOf(Text, 1)]
TextMapping = Annotated[Mapping[str, Any], MappingOf(Text, Open())]
KernelName = Annotated[str, OneOf("gaussian", "laplacian", "matern")]
