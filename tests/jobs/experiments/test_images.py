"""001, §5.3 at small scale: digits as bags of pixels, and where CIFAR-10 is looked for."""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis.jobs.experiments.data.cifar10 import FILES
from bagbasis.jobs.experiments.gmm_components_report import HDD
from bagbasis.jobs.experiments.images import ImageClasses, images
from bagbasis.jobs.experiments.images_report import accuracies
from bagbasis.jobs.experiments.images_settings import CIFAR_FOLDER
from tests.jobs.experiments.running import results_of, small_run
from tests.jobs.running import assert_picture


@pytest.fixture(scope="module")
def out_dir(tmp_path_factory):
    """What the command leaves behind at small scale."""
    return small_run("images", tmp_path_factory.mktemp("images"))


def test_order_of_the_methods(out_dir):
    """HDD is ahead of Hist JS, and level with L2 and MMD. Over seeds 0 to 2, accuracy in the mean
    of both training sizes, the best of JS and Hellinger leads Hist JS by .015 at least and L2 by
    -.004, MMD by .000; with all training images it has .978 at least."""
    _, results = results_of(out_dir)
    found = {method: shares[0] for method, shares in accuracies(results, "digits").items()}
    means = {method: shares.mean() for method, shares in found.items()}
    best = max(means[method] for method in ("JS", "Hellinger"))
    assert best > means["Hist JS"] + 0.007
    assert best > means["L2"] - 0.015
    assert best > means["MMD"] - 0.015
    assert max(found[method][-1] for method in HDD) > 0.965
    for shares in found.values():
        assert shares[0] + 0.015 < shares[-1] < 1


def test_table_and_picture(out_dir):
    """A row a method, the lead of the best HDD in words, and a picture."""
    report, results = results_of(out_dir)
    [table] = report["tables"]
    found = accuracies(results, "digits")
    assert [row[0] for row in table["rows"]] == list(found)
    for row in table["rows"]:
        assert row[1:3] == pytest.approx(found[row[0]][0].tolist())
        assert len(row) == len(table["columns"])
    best = max(HDD, key=lambda method: found[method][0, -1])
    lead = found[best][0, -1] - found["L2"][0, -1]
    assert f"best HDD is {best}" in table["remarks"][1]
    assert f"L2 {lead:+.4f}" in table["remarks"][1]
    assert "The paper's order: TV > JS; HDD ≥ Hist JS > L2, MMD. Holds here:" in table["remarks"][1]
    assert report["pictures"] == ["digits.png"]
    assert_picture(out_dir / "digits.png")


def test_no_image_is_in_both_sets():
    """Training and test images of a split are disjoint."""
    train, test = (images("digits", split, 3)[0] for split in ("train", "test"))
    first = {bag.tobytes() for bag in train}
    assert not any(bag.tobytes() in first for bag in test)


def test_cats_and_dogs_where_their_files_are(tmp_path, monkeypatch):
    """Without the files the paper's images are left out and said to be missing, with them they
    are read: other numbers of images, two classes."""
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path))
    without = ImageClasses("paper", 0, tmp_path / "out")
    assert list(without.tasks) == ["digits"]
    assert "which are not here" in without.size
    folder = tmp_path / CIFAR_FOLDER
    folder.mkdir()
    rng = np.random.default_rng(0)
    for name in (*FILES["train"], *FILES["test"]):
        records = rng.integers(0, 256, (40, 3073), dtype=np.uint8)
        records[:, 0] = np.arange(40) % 10
        records.tofile(folder / name)
    found = ImageClasses("paper", 0, tmp_path / "out")
    assert list(found.tasks) == ["digits", "cats and dogs"]
    assert "cats and dogs: 2,500, 5,000, 10,000 training images" in found.size
    assert len(found.points()) == len(without.points()) + 6
    (train, labels), (test, _) = found._split(found.tasks["cats and dogs"], 0)
    assert (len(train), len(test)) == (40, 8)
    assert set(labels) == {3, 5}
    assert (train.sizes == 2048).all()
