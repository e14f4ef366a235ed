"""`CIFAR10`: the images of CIFAR-10, from files that the user has, as bags of pixels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from bagbasis import Bags
from bagbasis.core.errors import DataError, ParameterError
from bagbasis.data.bags.bags import offsets_of
from bagbasis.data.storage.files import storage_errors
from bagbasis.datasets import Dataset
from bagbasis.datasets.base import LabelledBlock

_SIDE = 32
RECORD = 1 + 3 * _SIDE**2  # bytes: the label, then the red, the green and the blue plane
FILES = {"train": tuple(f"data_batch_{i}.bin" for i in range(1, 6)), "test": ("test_batch.bin",)}
CIFAR_CLASSES = (
    "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck",
)  # fmt: skip
LUMA = (0.299, 0.587, 0.114)  # ITU-R BT.601
IMAGES_A_BLOCK = 256


@dataclass(frozen=True, kw_only=True)
class CIFAR10(Dataset):
    """Photographs of 32 x 32 pixels; bag = an image's 2,048 points (x, y, v) in [0, 1]^3.

    The representation of Sutherland et al. 2016, 5.3: the centres of the pixels, x to the right
    and y down, the grey value v, and the same of the image mirrored. The target is CIFAR's label.
    Not in the registry of datasets, for its files do not come with this package.

    Parameters
    ----------
    folder : str
        Folder of the *binary version*: ``data_batch_1.bin`` … ``data_batch_5.bin``,
        ``test_batch.bin``.
    split : {"train", "test"}
    classes : tuple of str
        The images to take, in the order of the files; default the cats and the dogs, as there.
    seed : int
        Not used: nothing is drawn.
    """

    name: ClassVar[str] = "cifar10"
    class_names: ClassVar = {"label": CIFAR_CLASSES}

    folder: str
    split: str = "train"
    classes: tuple[str, ...] = ("cat", "dog")

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "classes", tuple(self.classes))
        if self.split not in FILES:
            raise ParameterError(f"split is {self.split!r}; expected 'train' or 'test'")
        unknown = [name for name in self.classes if name not in CIFAR_CLASSES]
        if unknown or not self.classes:
            raise ParameterError(f"classes is {self.classes!r}; expected some of {CIFAR_CLASSES}")

    @property
    def n_dims(self) -> int:
        return 3

    @property
    def target_names(self) -> tuple[str, ...]:
        return ("label",)

    @property
    def block_bags(self) -> int:
        return IMAGES_A_BLOCK

    @property
    def n_bags(self) -> int:
        return len(self._records)

    def block_sizes(self, index: int) -> NDArray[np.int64]:
        return np.full(len(self._block(index)), 2 * _SIDE**2, dtype=np.int64)

    def block(self, index: int) -> LabelledBlock:
        """Return a block; DataError for a file that is not there, or is none of CIFAR-10's."""
        records = self._block(index)
        planes = records[:, 1:].reshape(-1, 3, _SIDE, _SIDE)
        grey = np.einsum("ncij,c->nij", planes, np.array(LUMA, dtype=np.float32) / 255)
        centres = (np.arange(_SIDE, dtype=np.float32) + 0.5) / _SIDE
        points = np.empty((len(records), 2, _SIDE, _SIDE, 3), dtype=np.float32)
        points[..., 0] = centres
        points[..., 1] = centres[:, None]
        points[:, 0, ..., 2] = grey
        points[:, 1, ..., 2] = grey[..., ::-1]
        np.minimum(points, 1, out=points)  # white, rounded
        bags = Bags.trusted(points.reshape(-1, 3), offsets_of(self.block_sizes(index)))
        return bags, records[:, :1].astype(np.float64)

    def _block(self, index: int) -> NDArray[np.uint8]:
        return self._records[index * IMAGES_A_BLOCK : (index + 1) * IMAGES_A_BLOCK]

    @property
    def _records(self) -> NDArray[np.uint8]:
        return records_of(self.folder, self.split, self.classes)


@lru_cache(maxsize=2)
def records_of(folder: str, split: str, classes: tuple[str, ...]) -> NDArray[np.uint8]:
    """Labels and pixels of the images of some classes, shape (n, 3073)."""
    records = np.concatenate([_file(Path(folder) / name) for name in FILES[split]])
    return records[np.isin(records[:, 0], [CIFAR_CLASSES.index(name) for name in classes])]


def _file(path: Path) -> NDArray[np.uint8]:
    remedy = "put the binary version of CIFAR-10 there"
    with storage_errors(path, "cannot be read", remedy, DataError):
        values = np.fromfile(path, dtype=np.uint8)
    records = values[: len(values) - len(values) % RECORD].reshape(-1, RECORD)
    if len(values) % RECORD or not len(values) or records[:, 0].max() >= len(CIFAR_CLASSES):
        raise DataError(
            f"{path}: is not a file of the binary version of CIFAR-10; download it again"
        )
    return records
