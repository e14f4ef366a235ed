"""`scenes` at small scale, its images, and what its filters make of them."""

from __future__ import annotations

import numpy as np

from bagbasis.jobs.experiments.regression.marginals import (
    COLUMNS,
    WINDOW,
    photographs,
)


def test_windows_of_training_and_test_share_no_pixel(monkeypatch):
    """Each is within its half of its place; all places come."""
    row, column = np.indices((427, 640))
    photos = np.array([np.stack([np.full_like(row, i), row, column], axis=2) for i in range(2)])
    monkeypatch.setattr(
        "bagbasis.jobs.experiments.regression.marginals.load_photos", lambda: photos
    )
    for part in (0, 1):
        images, labels = photographs(160, 16, part, 0)
        assert images.shape == (160, WINDOW, WINDOW, 3)
        half = images[..., 2] // (640 // COLUMNS // 2)
        place = 8 * images[..., 0] + 4 * (images[..., 1] // 213) + half // 2
        np.testing.assert_array_equal(place, np.broadcast_to(labels[:, None, None], place.shape))
        assert (half % 2 == part).all()
