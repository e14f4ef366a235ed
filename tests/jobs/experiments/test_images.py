"""001, §5.3 at small scale: digits as bags of pixels, and where CIFAR-10 is looked for."""

from __future__ import annotations

import numpy as np

from bagbasis.jobs.experiments.data.cifar10 import FILES
from bagbasis.jobs.experiments.regression.images import CIFAR_FOLDER
from tests.jobs.experiments.contract import make


def test_cats_and_dogs_where_their_files_are(tmp_path, monkeypatch):
    """Without the files the paper's images are left out and said to be missing, with them they
    are read: other numbers of images, two classes. No digit is in both sets."""
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path))
    without = make("images", scale="paper")
    assert list(without.tasks) == ["digits"]
    assert "not here: cats and dogs" in without.size
    train, test = without.split_of(without.tasks["digits"], 2)
    first = {bag.tobytes() for bag in train[0]}
    assert not any(bag.tobytes() in first for bag in test[0])
    folder = tmp_path / CIFAR_FOLDER
    folder.mkdir()
    rng = np.random.default_rng(0)
    for name in (*FILES["train"], *FILES["test"]):
        records = rng.integers(0, 256, (40, 3073), dtype=np.uint8)
        records[:, 0] = np.arange(40) % 10
        records.tofile(folder / name)
    result = make("images", scale="paper")
    assert list(result.tasks) == ["digits", "cats and dogs"]
    assert "not here" not in result.size
    assert len(result.points()) == len(without.points()) + 6
    (train, labels), (test, _) = result.split_of(result.tasks["cats and dogs"], 0)
    assert (len(train), len(test)) == (40, 8)
    assert set(labels) == {3, 5}
    assert (train.sizes == 2048).all()
