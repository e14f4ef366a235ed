"""Multiple-instance sets of the package `mil`: one CSV each, with class, bag and coordinates."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd

from bagbasis import Bags
from bagbasis.data.bags.bags import offsets_of

from .recipe import LabelledSet, Recipe, packaged_file

_LICENCE = "data: none stated (multipleinstancelearning.com), musk CC BY 4.0; package: MIT"
# By name: file, source, task
_SETS: dict[str, tuple[str, str, str]] = {
    "musk 1": (
        "musk1",
        "Dietterich, Lathrop and Lozano-Pérez 1997",
        "molecules, shapes they take, musk or not",
    ),
    "musk 2": (
        "musk2",
        "Dietterich, Lathrop and Lozano-Pérez 1997",
        "molecules, shapes they take, musk or not",
    ),
    "elephant": (
        "elephant",
        "Andrews, Tsochantaridis and Hofmann 2002",
        "photographs, segments, with an elephant or not",
    ),
    "corel dogs": (
        "corel_dogs",
        "Chen, Bi and Wang 2006",
        "photographs, segments, with a dog or not",
    ),
    "protein": (
        "protein",
        "Tao, Scott, Vinodchandran and Osugi 2004",
        "proteins, windows of the sequence, of the family TrX or not",
    ),
    "birds": (
        "birds_brown_creeper",
        "Briggs, Fern and Raich 2012",
        "recordings, segments of the spectrogram, with a brown creeper or not",
    ),
    "breast": (
        "ucsb_breast_cancer",
        "Kandemir, Zhang and Hamprecht 2014",
        "images of tissue, patches, malignant or not",
    ),
    "web": (
        "web_recommendation_1",
        "Zhou, Jiang and Li 2005",
        "index pages, linked pages as counts of words, liked by a reader or not",
    ),
}


def read_instances(name: str) -> LabelledSet:
    """Read a file of ``mil``: columns class, bag, then the coordinates of an instance."""
    path = packaged_file("mil", f"mil/data/datasets/csv/{name}.csv")
    rows = pd.read_csv(path, header=None).to_numpy(np.float64)
    rows = rows[np.argsort(rows[:, 1], kind="stable")]
    _, first, counts = np.unique(rows[:, 1], return_index=True, return_counts=True)
    points, labels = rows[:, 2:].astype(np.float32), rows[first, 0]
    return LabelledSet(Bags(points, offsets_of(counts)), labels)


INSTANCES = {
    name: Recipe(
        partial(read_instances, file), "classification", "mil", _LICENCE, source, f"bags: {task}"
    )
    for name, (file, source, task) in _SETS.items()
}
