"""Declared types that components of several packages share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from .constraints import OneOf, Seed

RandomSeed = Annotated[int, Seed]
Precision = Annotated[str, OneOf("float32", "float64")]
Progress = Callable[[int, int], None]
"""Function that is called with the number of units done and of all units (points, bags, …)."""

KernelName = Annotated[str, OneOf("gaussian", "laplacian", "matern")]
