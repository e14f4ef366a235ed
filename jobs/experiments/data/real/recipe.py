"""What a recipe of real bags is, and how it finds the files of an installed package."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Literal

import numpy as np

from bagbasis import Bags
from bagbasis.core.arrays import Floats, Integers
from bagbasis.core.errors import DataError

Kind = Literal["classification", "regression"]


@dataclass(frozen=True, eq=False)
class LabelledSet:
    """Bags with a label and a group each.

    Attributes
    ----------
    bags : Bags
    labels : float64, shape (n_bags,)
        Classes are 0, 1, ….
    groups : int64, shape (n_bags,), or None
        Bags of equal numbers are not independent; None: all are.
    """

    bags: Bags
    labels: Floats
    groups: Integers | None = None

    def sample(self, most: int, rng: np.random.Generator) -> LabelledSet:
        """Return at most so many bags, drawn at random, of as few groups as that takes."""
        n = len(self.bags)
        if n <= most:
            return self
        by_bag = np.arange(n) if self.groups is None else self.groups
        names, of_bags = np.unique(by_bag, return_inverse=True)
        order = rng.permutation(len(names))[of_bags]
        chosen = np.sort(np.argsort(order, kind="stable")[:most])
        groups = None if self.groups is None else self.groups[chosen]
        return LabelledSet(self.bags[chosen], self.labels[chosen], groups)


@dataclass(frozen=True)
class Recipe:
    """How a set is read, and whose it is.

    Attributes
    ----------
    read : callable
        Returns the set.
    kind : {"classification", "regression"}
    package : str
        The distribution whose files are read.
    licence : str
        Licence of the data, as far as one is stated, and of the package.
    source : str
        Who collected it.
    task : str
        Description of a bag, its points and its label.
    """

    read: Callable[[], LabelledSet]
    kind: Kind
    package: str
    licence: str
    source: str
    task: str


def packaged_file(package: str, path: str, command: str = "") -> Path:
    """Return a file of an installed package; nothing of the package is imported.

    Parameters
    ----------
    package : str
        The name of the distribution.
    path : str
        Below site-packages.
    command : str
        Command that installs the package. Default: the extra ``experiments``.

    Raises
    ------
    DataError
        The package is not installed, or has no such file.
    """
    how = command or 'pip install "bagbasis[experiments]"'
    try:
        file = Path(str(distribution(package).locate_file(path)))
    except PackageNotFoundError as error:
        raise DataError(f"{path}: the package {package} is not installed: {how}") from error
    if not file.is_file():
        raise DataError(f"{file}: is not a file of this version of {package}: {how}")
    return file
