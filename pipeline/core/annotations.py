"""Declared types that components of several packages share."""

from __future__ import annotations

from typing import Annotated

from .constraints import OneOf, Seed

RandomSeed = Annotated[int, Seed]
Precision = Annotated[str, OneOf("float32", "float64")]
KernelName = Annotated[str, OneOf("gaussian", "laplacian", "matern")]
