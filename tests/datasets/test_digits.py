"""The bundled digits as bags of pixels."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits

from bagbasis.datasets import Digits


def blocks(dataset: Digits) -> tuple[np.ndarray, np.ndarray]:
    """All points, shape (n_bags, 64, 3), and labels."""
    parts = [dataset.block(i) for i in range(-(-dataset.n_bags // dataset.block_bags))]
    points = np.concatenate([bags.points for bags, _ in parts]).reshape(-1, 64, 3)
    return points, np.concatenate([targets[:, 0] for _, targets in parts])


def test_every_image_can_be_drawn_from_its_bag() -> None:
    """Each point lies at the centre of its pixel, x to the right and y down, with its value."""
    points, labels = blocks(Digits())
    bunch = load_digits()
    assert points.shape == (1797, 64, 3)
    column, row = (points[..., j] * 8 - 0.5 for j in (0, 1))
    np.testing.assert_array_equal(column, column.round())
    drawn = np.full((1797, 8, 8), np.nan)
    bag = np.arange(1797)[:, None]
    drawn[bag, row.astype(int), column.astype(int)] = points[..., 2] * 16
    np.testing.assert_array_equal(drawn, bunch.images)
    np.testing.assert_array_equal(labels, bunch.target)


@pytest.mark.parametrize("seed", [0, 1])
def test_split_is_disjoint_complete_and_stratified(seed: int) -> None:
    """Train and test share no image, lack none, and each class is split 70/30."""
    train, test = Digits(split="train", seed=seed), Digits(split="test", seed=seed)
    assert (train.n_bags, test.n_bags, Digits().n_bags) == (1257, 540, 1797)
    (a, y_train), (b, y_test), (everything, y) = blocks(train), blocks(test), blocks(Digits())

    def images(points: np.ndarray) -> list[bytes]:
        return sorted(
            points[..., 2].tobytes()[i : i + 256] for i in range(0, 256 * len(points), 256)
        )

    assert sorted(images(a) + images(b)) == images(everything)
    counts = np.bincount(y.astype(int))
    np.testing.assert_allclose(np.bincount(y_test.astype(int)), 0.3 * counts, atol=1)
    np.testing.assert_array_equal(
        np.bincount(y_train.astype(int)) + np.bincount(y_test.astype(int)), counts
    )


def test_split_is_drawn_from_the_seed() -> None:
    """The same seed gives the same split, another seed another one."""
    first = blocks(Digits(split="test", seed=0))[0]
    np.testing.assert_array_equal(first, blocks(Digits(split="test", seed=0))[0])
    assert (first != blocks(Digits(split="test", seed=1))[0]).any()


def test_last_block_holds_the_rest() -> None:
    """1,797 bags are a full block and a part of one, and nothing lies behind them."""
    assert [len(Digits().block(i)[0]) for i in range(3)] == [1024, 773, 0]
    assert Digits().class_names == {"digit": tuple("0123456789")}
