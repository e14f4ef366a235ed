"""A dataset of uniform bags."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bagbasis import Bags
from bagbasis.datasets import Dataset, register_dataset


@register_dataset
@dataclass(frozen=True, kw_only=True)
class Steps(Dataset):
    """Bags of one coordinate, uniform below a height; the target is the height."""

    name: ClassVar[str] = "steps"
    n_dims: ClassVar[int] = 1
    target_names: ClassVar[tuple[str, ...]] = ("height",)
    block_bags: ClassVar[int] = 10

    n_points: int = 5

    def block(self, index):
        """Return the bags and targets of a block."""
        rng = np.random.default_rng([self.seed, index])
        heights = rng.random((self.block_bags, 1))
        points = rng.random((self.block_bags, self.n_points, 1)) * heights[:, None]
        return Bags.from_list([*points.astype(np.float32)]), heights
