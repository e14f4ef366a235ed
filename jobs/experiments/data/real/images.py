"""Images inside scikit-learn, as bags of pixels."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_sample_images

from bagbasis import Bags
from bagbasis.data.bags.bags import offsets_of
from bagbasis.datasets import Digits

from ...kit.learning import draw_from
from .recipe import LabelledSet, Recipe

_SIDE = 32  # pixels of a tile
COLUMNS_PER_STRIP = 4


def read_digits() -> LabelledSet:
    """Read handwritten digits: place and ink of a pixel, and the digit."""
    bags, labels = draw_from(Digits())
    return LabelledSet(bags, labels)


def read_tiles() -> LabelledSet:
    """Read tiles of a photograph: colours of a pixel, and the tile's height; strips are groups."""
    photo = load_sample_images().images[0]
    n_rows, n_columns = photo.shape[0] // _SIDE, photo.shape[1] // _SIDE
    photo = photo[: n_rows * _SIDE, : n_columns * _SIDE]
    tiles = photo.reshape(n_rows, _SIDE, n_columns, _SIDE, 3).swapaxes(1, 2)
    points = tiles.reshape(-1, 3).astype(np.float32)
    row, column = np.divmod(np.arange(n_rows * n_columns), n_columns)
    offsets = offsets_of(np.full(len(row), _SIDE * _SIDE))
    return LabelledSet(Bags(points, offsets), 1 - (row + 0.5) / n_rows, column // COLUMNS_PER_STRIP)


IMAGES = {
    "digits": Recipe(
        read_digits,
        "classification",
        "scikit-learn",
        "data: CC BY 4.0 (UCI); package: BSD-3-Clause",
        "Alpaydin and Kaynak 1998",
        "bags: images, place and ink of a pixel, which digit",
    ),
    "tiles": Recipe(
        read_tiles,
        "regression",
        "scikit-learn",
        "data: CC BY 2.0 (danielbuechele); package: BSD-3-Clause",
        "scikit-learn's china.jpg",
        "bags: tiles of a photograph, colours of a pixel, height; groups: strips of columns",
    ),
}
