"""Versions of installed packages, looked up once per process: each look-up parses a long text."""

from __future__ import annotations

from functools import cache
from importlib import metadata

version = cache(metadata.version)
