"""`Digits`: the handwritten digits bundled with scikit-learn, as bags of pixels."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, ClassVar

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from ..core import OneOf, checked, frozen_component
from ..core.arrays import Floats, Integers
from ..data.bags.bags import Bags, offsets_of
from .base import BLOCK, Dataset, LabelledBlock
from .registered import DATASETS

SIDE = 8  # pixels per side of an image
MAX_INTENSITY = 16  # largest intensity of a pixel in scikit-learn's data
TEST_FRACTION = 0.3  # fraction of the images in each class


@DATASETS.register
@frozen_component
class Digits(Dataset):
    """Images of handwritten digits: a bag is the 64 points (x, y, intensity) of an image.

    The dataset has 1,797 images of 8 x 8 pixels; all coordinates are in [0, 1]. The representation
    is from Sutherland et al. 2016, section 5.3: (x, y) is the centre of a pixel, with x to the
    right and y down. The intensity is 0 for paper and 1 for ink. Horizontal reflections, which
    the paper adds to photographs, are omitted because a mirrored digit has another shape.

    Parameters
    ----------
    split
        Part of the images: "train" has 70 % of each class, "test" the other 30 %.
    seed
        Seed for drawing the split.

    See Also
    --------
    GMMComponents : Count the components of a mixture.
    Dirichlet : Bags of proportions.
    generate : Write a dataset to a store.

    Examples
    --------
    >>> from bagbasis.datasets import Digits
    >>> bags, digits = Digits().block(0)
    >>> bags[0].shape
    (64, 3)
    """

    name: ClassVar[str] = "digits"
    n_dims = 3
    target_names = ("digit",)
    class_names: ClassVar = {"digit": tuple("0123456789")}

    split: Annotated[str, OneOf("all", "train", "test")] = "all"

    @property
    def n_bags(self) -> int:
        """Number of images in the split."""
        return len(split_members(self.split, self.seed))

    @checked
    def block(self, index: int) -> LabelledBlock:
        """Return bags (float32) and targets of a block."""
        intensities, labels = images()
        members = self._members(index)
        centres = (np.arange(SIDE) + 0.5) / SIDE
        points = np.empty((len(members), SIDE, SIDE, 3), dtype=np.float32)
        points[..., 0] = centres
        points[..., 1] = centres[:, None]
        points[..., 2] = intensities[members] / MAX_INTENSITY
        sizes = np.full(len(members), SIDE**2, dtype=np.int64)
        bags = Bags.trusted(points.reshape(-1, 3), offsets_of(sizes))
        return bags, labels[members][:, None].astype(np.float64)

    def _members(self, index: int) -> Integers:
        return split_members(self.split, self.seed)[index * BLOCK : (index + 1) * BLOCK]


@lru_cache
def images() -> tuple[Floats, Integers]:
    """Return intensities 0 … 16, shape (1797, 8, 8), and labels 0 … 9 from scikit-learn."""
    bunch = load_digits()
    return bunch.images, bunch.target


@lru_cache
def split_members(split: str, seed: int) -> Integers:
    """Return the indices of the images in a split, in ascending order."""
    labels = images()[1]
    everything = np.arange(len(labels))
    if split == "all":
        return everything
    train, test = train_test_split(
        everything, test_size=TEST_FRACTION, stratify=labels, random_state=seed
    )
    return np.sort(train if split == "train" else test)
