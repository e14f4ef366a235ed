"""`Digits`: the handwritten digits bundled with scikit-learn, as bags of pixels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from ..core import Integer, OneOf, checked
from ..core.arrays import Floats, Integers
from ..data.bags.bags import Bags, offsets_of
from .base import BLOCK, Dataset, LabelledBlock

SIDE = 8  # pixels
MAX_INTENSITY = 16  # of a pixel in scikit-learn's data
TEST_FRACTION = 0.3  # fraction of the images in each class


@dataclass(frozen=True, kw_only=True)
class Digits(Dataset):
    """1,797 images of 8 x 8 pixels; bag = one image's 64 points (x, y, intensity) in [0, 1]^3.

    The representation of Sutherland et al. 2016, 5.3: x and y are the centre of a pixel, x to
    the right and y down, and the intensity is 0 for paper and 1 for ink. The horizontal
    reflection that they add to photographs is left out, for a mirrored digit is another shape.

    Parameters
    ----------
    split : {"all", "train", "test"}
        Part of the images: "train" has 70 % of each class, "test" the other 30 %.
    seed : int in [0, 2^32)
        Draws the split.

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

    split: str = "all"

    def __post_init__(self) -> None:
        """Refuse parameters out of their range."""
        super().__post_init__()
        OneOf("all", "train", "test").check("split", self.split)

    @property
    def n_bags(self) -> int:
        """Images in the split."""
        return len(split_members(self.split, self.seed))

    @checked(index=Integer())
    def block(self, index: int) -> LabelledBlock:
        """Make a block: bags of float32 points, and their targets."""
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
    """Load intensities 0 … 16, shape (1797, 8, 8), and labels 0 … 9, in scikit-learn's order."""
    bunch = load_digits()
    return bunch.images, bunch.target


@lru_cache
def split_members(split: str, seed: int) -> Integers:
    """Return the indices of the images in a split, ascending."""
    labels = images()[1]
    everything = np.arange(len(labels))
    if split == "all":
        return everything
    train, test = train_test_split(
        everything, test_size=TEST_FRACTION, stratify=labels, random_state=seed
    )
    return np.sort(train if split == "train" else test)
