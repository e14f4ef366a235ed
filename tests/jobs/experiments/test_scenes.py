"""`scenes` at small scale, its images, and what its filters make of them."""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis.jobs.experiments.data.scenes import (
    COLUMNS,
    IMAGES,
    PATCH,
    WINDOW,
    Filters,
    patches_of,
    photographs,
)


def test_windows_of_training_and_test_share_no_pixel(monkeypatch):
    """Each is within its half of its place; all places come."""
    row, column = np.indices((427, 640))
    photos = np.array([np.stack([np.full_like(row, i), row, column], axis=2) for i in range(2)])
    monkeypatch.setattr("bagbasis.jobs.experiments.data.scenes._photos", lambda: photos)
    for part in (0, 1):
        images, labels = photographs(160, 16, part, 0)
        assert images.shape == (160, WINDOW, WINDOW, 3)
        half = images[..., 2] // (640 // COLUMNS // 2)
        place = 8 * images[..., 0] + 4 * (images[..., 1] // 213) + half // 2
        np.testing.assert_array_equal(place, np.broadcast_to(labels[:, None, None], place.shape))
        assert (half % 2 == part).all()


@pytest.mark.parametrize("kind", IMAGES)
def test_images_are_those_of_seed_and_part(kind):
    """Other parts are other images of the same classes."""
    (images, labels), (again, _), (others, _) = (IMAGES[kind](12, 5, p, 3) for p in (0, 0, 1))
    np.testing.assert_array_equal(labels, np.arange(12) % 5)
    np.testing.assert_array_equal(images, again)
    assert not np.array_equal(images, others)
    assert 0.2 < images.mean() < 0.8
    assert (images.std(axis=(1, 2)) > 0).all()


@pytest.mark.long
def test_filters_squash_as_the_paper_says():
    """0 becomes ½, a filter's 90th percentile above 0 becomes .9, the 10th below it .1."""
    images, _ = IMAGES["textures"](40, 4, 0, 1)
    filters = Filters.of(images, 6, np.random.default_rng(0))
    bags = filters.bags(images, 200, np.random.default_rng(1))
    assert len(bags) == 40
    assert bags.points.dtype == np.float32
    for values in bags.points.T:
        np.testing.assert_allclose(np.quantile(values[values > 0.5], 0.9), 0.9, atol=0.02)
        np.testing.assert_allclose(np.quantile(values[values < 0.5], 0.1), 0.1, atol=0.02)


def test_patches_are_cut_from_their_images():
    """Whole patches, in the images' order."""
    images = np.arange(3.0)[:, None, None, None] * np.ones((3, WINDOW, WINDOW, 3))
    images[..., 1] = np.arange(WINDOW)
    patches = patches_of(images, 4, np.random.default_rng(0)).reshape(3, 4, 3, PATCH, PATCH)
    assert (patches[:, :, 0] == np.arange(3.0)[:, None, None, None]).all()
    assert (np.diff(patches[:, :, 1], axis=3) == 1).all()
