"""CIFAR-10 from small files in its binary format."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bagbasis import DataError
from bagbasis.jobs.experiments.data.cifar10 import FILES, cats_and_dogs

IMAGES_A_FILE = 60


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """All files, with a few random images each; the first two images of the tests are plain."""
    rng = np.random.default_rng(0)
    for name in (*FILES["train"], *FILES["test"]):
        records = rng.integers(0, 256, (IMAGES_A_FILE, 3073), dtype=np.uint8)
        records[:, 0] = np.arange(IMAGES_A_FILE) % 10
        records.tofile(tmp_path / name)
    records[3, 1:] = 255
    records[5, 1 : 1 + 1024] = 0
    records[5, 1 + 1024 : 1 + 2048] = 255
    records[5, 1 + 2048 :] = 0
    records.tofile(tmp_path / "test_batch.bin")
    return tmp_path


def test_every_image_can_be_drawn_from_its_bag(folder: Path) -> None:
    """Both halves of a bag give the grey image back, the second one mirrored; labels are CIFAR's,
    in the order of the files."""
    bags, labels = cats_and_dogs(folder, "train")
    points = bags.points.reshape(-1, 2, 1024, 3)
    files = [np.fromfile(folder / name, np.uint8).reshape(-1, 3073) for name in FILES["train"]]
    records = np.concatenate(files)
    records = records[(records[:, 0] == 3) | (records[:, 0] == 5)]
    assert len(bags) == len(points) == 60
    np.testing.assert_array_equal(labels, records[:, 0])
    grey = records[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1) @ [0.299, 0.587, 0.114]
    for half, expected in ((0, grey), (1, grey[:, :, ::-1])):
        column, row = (points[:, half, :, j] * 32 - 0.5 for j in (0, 1))
        drawn = np.full((len(points), 32, 32), np.nan)
        bag = np.arange(len(points))[:, None]
        drawn[bag, row.round().astype(int), column.round().astype(int)] = points[:, half, :, 2]
        np.testing.assert_allclose(drawn * 255, expected, atol=1e-3)


def test_other_files_are_refused(folder: Path) -> None:
    """A file that is cut off, has an unknown label, or is not there."""
    path = folder / "test_batch.bin"
    records = np.fromfile(path, np.uint8)
    for values in (records[:-1], np.full(3073, 10, np.uint8)):
        values.tofile(path)
        with pytest.raises(DataError, match="is not a file"):
            cats_and_dogs(folder, "test")
    path.unlink()
    with pytest.raises(DataError, match="cannot be read"):
        cats_and_dogs(folder, "test")
