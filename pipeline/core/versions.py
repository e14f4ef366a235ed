"""Versions of installed packages, looked up once per process: each look-up parses a long text."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib import metadata

NUMERICAL = ("bagbasis", "numpy", "scipy", "numba")
"""Packages on which the bits of a sum depend."""

RECORDED_PACKAGES = (*NUMERICAL, "scikit-learn", "zarr")
"""Packages whose versions models and reports keep."""

DISTRIBUTED = (*RECORDED_PACKAGES, "dask", "distributed")
"""Packages whose versions runs on clusters keep, too."""

version = cache(metadata.version)


def versions_of(names: Iterable[str]) -> dict[str, str]:
    """Return the versions of packages by their names; PackageNotFoundError if one is missing."""
    return {name: version(name) for name in names}
