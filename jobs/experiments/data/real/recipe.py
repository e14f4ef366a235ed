"""What a recipe of real bags is, and how it finds the files of an installed package."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from bagbasis import Bags
from bagbasis.core.arrays import Floats, Integers
from bagbasis.core.errors import DataError
from bagbasis.data.bags.bags import offsets_of

Kind = Literal["classification", "regression"]


@dataclass(frozen=True, eq=False)
class LabelledSet:
    """Bags with labels; bags of equal groups are not independent, without groups all are."""

    bags: Bags
    labels: Floats
    groups: Integers | None = None

    @property
    def units(self) -> Integers:
        return np.arange(len(self.labels)) if self.groups is None else self.groups

    def __getitem__(self, places: Any) -> LabelledSet:  # noqa: ANN401 - what indexes arrays
        groups = None if self.groups is None else self.groups[places]
        return LabelledSet(self.bags[places], self.labels[places], groups)

    def sample(self, most: int, rng: np.random.Generator) -> LabelledSet:
        """Return at most so many bags, drawn at random, of as few groups as that takes."""
        if len(self.bags) <= most:
            return self
        names, of_bags = np.unique(self.units, return_inverse=True)
        order = rng.permutation(len(names))[of_bags]
        return self[np.sort(np.argsort(order, kind="stable")[:most])]


class Recipe(NamedTuple):
    """How a set is read, and the kind of its labels; the note of `real-bags` has its licence."""

    read: Callable[[], LabelledSet]
    kind: Kind


def bags_of_rows(table: pd.DataFrame, bag: str, points: list[str], label: str) -> LabelledSet:
    """Make a bag of the rows with an equal value, labelled with the mean of a column."""
    table = table.sort_values(bag, kind="stable")
    groups = table.groupby(bag)
    rows: Floats = table[points].to_numpy(np.float64)
    labels = groups[label].mean().to_numpy(np.float64)
    return LabelledSet(Bags(rows, offsets_of(np.asarray(groups.size(), np.int64))), labels)


def packaged_file(package: str, path: str, command: str = "") -> Path:
    """Return a file below site-packages, without an import of its package; DataError without it."""
    how = command or 'pip install "bagbasis[experiments]"'
    try:
        file = Path(str(distribution(package).locate_file(path)))
    except PackageNotFoundError as error:
        raise DataError(f"{path}: the package {package} is not installed: {how}") from error
    if not file.is_file():
        raise DataError(f"{file}: is not a file of this version of {package}: {how}")
    return file
