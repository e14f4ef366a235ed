"""Files a job leaves behind: written whole or not at all."""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from bagbasis.errors import StoreError


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary file beside ``path`` that takes its place when the block ends without an error.

    Raises
    ------
    StoreError
        The directory can not be written.
    """
    final = Path(path)
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=final.parent, prefix=f".{final.name}.")
        os.close(handle)
    except OSError as error:
        raise StoreError(f"{final}: can not be written ({error.strerror})") from error
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(final)
    except OSError as error:
        raise StoreError(f"{final}: can not be written ({error.strerror or error})") from error
    finally:
        temporary.unlink(missing_ok=True)


def write_json(path: str | os.PathLike[str], report: Mapping[str, Any]) -> None:
    """A report as JSON; NaN and infinity become null, numpy scalars and arrays plain numbers."""
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(plain(report), indent=2, allow_nan=False) + "\n")


def plain(value: Any) -> Any:
    """The value in types JSON knows."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(item) for item in value]
    if value is None or isinstance(value, (bool, int, str)):
        return value
    return str(value)


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
