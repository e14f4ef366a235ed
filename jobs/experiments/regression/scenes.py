"""`Scenes`: scenes classified by the responses of filters at patches of their images (001, §5.4).

`marginals` with pixels: the filters are principal components of patches, of photographs' windows
and of generated scenes.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from bagbasis import MomentsEmbedding

from ..data.scenes import IMAGE_SOURCES, Filters
from ..kit.plots import GroupedBars
from .marginals import Labelled, MarginalGeometries, Sizes

_N_FILTERS = 24
_MEANS = "means"


class SceneSizes(Sizes):
    """Sizes of marginals, with the number of filters of pictures of scenes."""

    n_filters: ClassVar[int] = _N_FILTERS

    @property
    def methods(self) -> dict[str, list[Any]]:
        """Those of `marginals`, and the mean response of each filter."""
        means = MomentsEmbedding(covariance=False, box=[(0, 1)] * _N_FILTERS, standardize=False)
        return {**super().methods, _MEANS: [means]}


class Scenes(MarginalGeometries):
    """A point is a method on one kind of images, over all repeats."""

    name = "scenes"
    title = "Scenes by the patches of their images"
    kind = SceneSizes
    pictures = (
        GroupedBars(
            file="scenes.png",
            x="method",
            y=("linear", "rbf"),
            panels="images",
            label="accuracy",
        ),
    )
    axis = "images"
    shown = "{images}"
    images = tuple(IMAGE_SOURCES)

    def draw_images(self, kind: str, repeat: int) -> tuple[Labelled, Labelled]:
        """Return training and test images; filters are those of the former."""
        s = self.settings
        return _drawn(kind, 100 * self.seed + repeat, s.n_classes, s.n_train, s.n_test, s.n_points)


@lru_cache(maxsize=2)
def _drawn(
    kind: str, seed: int, n_classes: int, n_train: int, n_test: int, n_points: int
) -> tuple[Labelled, Labelled]:
    rng = np.random.default_rng([seed, 3])
    parts = [
        IMAGE_SOURCES[kind](n * n_classes, n_classes, part, seed)
        for part, n in enumerate((n_train, n_test))
    ]
    filters = Filters.of(parts[0][0], _N_FILTERS, rng)
    train, test = ((filters.bags(images, n_points, rng), labels) for images, labels in parts)
    return train, test
