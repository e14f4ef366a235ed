"""Time series inside the package `aeon`, in its text format: the times of a series are a bag.

The package asks for an older numba than this one does, and only its data are read.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from bagbasis import Bags
from bagbasis.core.arrays import Floats

from .recipe import LabelledSet, Recipe, packaged_file

INSTALL = "pip install --no-deps aeon"
_LICENCE = "data: CC BY 4.0 (UCI); package: BSD-3-Clause"
NONE_STATED = "data: none stated (timeseriesclassification.com); package: BSD-3-Clause"


def read_series(name: str, *, changes: bool) -> LabelledSet:
    """Read training and test series; with ``changes`` a point is a value and the step after it."""
    bags: list[Floats] = []
    labels: list[str] = []
    for part in ("TRAIN", "TEST"):
        path = packaged_file("aeon", f"aeon/datasets/data/{name}/{name}_{part}.ts", INSTALL)
        lines = (line.strip() for line in path.read_text(encoding="utf-8").splitlines())
        for line in lines:
            if line and line[0] not in "#@":
                *channels, label = line.split(":")
                points = np.array([channel.split(",") for channel in channels], np.float64).T
                labels.append(label)
                bags.append(_with_changes(points) if changes else points)
    classes = np.unique(labels, return_inverse=True)[1].astype(np.float64)
    return LabelledSet(Bags.from_list(bags), classes)


def _with_changes(points: Floats) -> Floats:
    return np.concatenate([points[:-1], np.diff(points, axis=0)], axis=1)


SERIES = {
    "vowels": Recipe(
        partial(read_series, "JapaneseVowels", changes=False),
        "classification",
        "aeon",
        _LICENCE,
        "Kudo, Toyama and Shimbo 1999",
        "bags: utterances, 12 coefficients of a moment of sound, which of nine speakers",
    ),
    "motions": Recipe(
        partial(read_series, "BasicMotions", changes=False),
        "classification",
        "aeon",
        NONE_STATED,
        "Clements 2018 (UEA archive)",
        "bags: recordings of a watch, 6 channels at a moment, which of four motions",
    ),
    "appliances": Recipe(
        partial(read_series, "ACSF1", changes=True),
        "classification",
        "aeon",
        NONE_STATED,
        "Gisler, Ridi, Zufferey, Khaled and Hennebert 2013",
        "bags: hours of an appliance, power and its change at a moment, which of ten kinds",
    ),
}
