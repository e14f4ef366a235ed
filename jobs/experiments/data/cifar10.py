"""The images of CIFAR-10, from files that the user has, as bags of pixels."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bagbasis import Bags
from bagbasis.core.arrays import Floats
from bagbasis.core.errors import DataError
from bagbasis.data.bags.bags import offsets_of
from bagbasis.data.storage.files import storage_errors

_SIDE = 32
RECORD = 1 + 3 * _SIDE**2  # bytes: the label, then the red, the green and the blue plane
FILES = {"train": tuple(f"data_batch_{i}.bin" for i in range(1, 6)), "test": ("test_batch.bin",)}
N_CLASSES, CAT_AND_DOG = 10, (3, 5)
LUMA = (0.299, 0.587, 0.114)  # ITU-R BT.601


@lru_cache(maxsize=2)
def cats_and_dogs(folder: Path, split: str) -> tuple[Bags, Floats]:
    """Return images as bags of 2,048 points (x, y, v) in [0, 1]^3, and CIFAR's labels.

    The representation of Sutherland et al. 2016, 5.3: the centres of the pixels, x to the right
    and y down, the grey value v, and the same of the image mirrored.
    """
    records = np.concatenate([_records(folder / name) for name in FILES[split]])
    records = records[np.isin(records[:, 0], CAT_AND_DOG)]
    planes = records[:, 1:].reshape(-1, 3, _SIDE, _SIDE)
    grey = np.einsum("ncij,c->nij", planes, np.array(LUMA, dtype=np.float32) / 255)
    centres = (np.arange(_SIDE, dtype=np.float32) + 0.5) / _SIDE
    points = np.empty((len(records), 2, _SIDE, _SIDE, 3), dtype=np.float32)
    points[..., 0] = centres
    points[..., 1] = centres[:, None]
    points[:, 0, ..., 2] = grey
    points[:, 1, ..., 2] = grey[..., ::-1]
    np.minimum(points, 1, out=points)  # white, rounded
    offsets = offsets_of(np.full(len(records), 2 * _SIDE**2))
    return Bags.trusted(points.reshape(-1, 3), offsets), records[:, 0].astype(np.float64)


def _records(path: Path) -> NDArray[np.uint8]:
    with storage_errors(path, "cannot be read", "put the binary version there", DataError):
        values = np.fromfile(path, dtype=np.uint8)
    records = values[: len(values) - len(values) % RECORD].reshape(-1, RECORD)
    if len(values) % RECORD or not len(values) or records[:, 0].max() >= N_CLASSES:
        raise DataError(f"{path}: is not a file of CIFAR-10's binary version; download it again")
    return records
