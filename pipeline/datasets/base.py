"""The base of all datasets: a small spec that makes block i of its bags anywhere, from a seed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..core import Integer
from ..core.arrays import Floats, Integers
from ..core.errors import ParameterError
from ..data.bags.bags import Bags
from ..data.bags.responses import Responses

BLOCK = 1024
"""Number of bags that a data set makes at a time; their points take a few MiB."""
MAX_VALUES = 2**28  # coordinates of one bag, which is made in memory: 1 GiB
BLOCK_VALUES = 2**21  # largest number of coordinates in a block: 8 MiB

LabelledBlock = tuple[Bags, Floats]


class ResponseBlock(NamedTuple):
    """A block of bags with their targets, shape (n, len(target_names)), and their responses.

    ``responses`` is None for a dataset that has none.
    """

    bags: Bags
    targets: Floats
    responses: Responses | None


@dataclass(frozen=True, kw_only=True)
class Dataset(ABC):
    """A sequence of labelled bags, made block by block.

    Block i is a pure function of the fields and i, so any process can make any block again.

    Parameters
    ----------
    seed : int in [0, 2^32)
        Seed; other seeds give independent bags of the same kind.

    Attributes
    ----------
    name : str
        Name of the dataset in `DATASETS`.
    box : sequence of (lo, hi), one per dimension, or None for the unit cube
        Range in which the points lie.
    class_names : mapping from target name to the names of its classes

    See Also
    --------
    register_dataset : Register a dataset of your own.
    make_dataset : Create a dataset by name.
    generate : Write a dataset to a store.

    Examples
    --------
    >>> from bagbasis.datasets import make_dataset
    >>> bags, targets = make_dataset('gmm_components', n_points=50).block(0)
    >>> targets.shape[0] == len(bags)
    True
    """

    name: ClassVar[str]
    box: ClassVar[Sequence[tuple[float, float]] | None] = None
    class_names: ClassVar[Mapping[str, Sequence[str]]] = {}

    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse parameters out of their range."""
        Integer(0, 2**32 - 1).check("seed", self.seed)

    @property
    @abstractmethod
    def n_dims(self) -> int:
        """Coordinates of a point."""

    @property
    @abstractmethod
    def target_names(self) -> tuple[str, ...]:
        """One name per target column."""

    @property
    def response_dims(self) -> int | None:
        """Coordinates of a response point; None for bags without responses."""
        return None

    @property
    def response_box(self) -> Sequence[tuple[float, float]] | None:
        """Where the points of the responses lie, as ``box``."""
        return None

    @property
    def n_bags(self) -> int | None:
        """Number of bags; None when any number can be made."""
        return None

    @property
    def block_bags(self) -> int:
        """Bags in a block; the last block of a finite dataset holds the rest."""
        return BLOCK

    @abstractmethod
    def block(self, index: int) -> LabelledBlock:
        """Make a block: bags of float32 points, and float64 targets, (n, len(target_names))."""

    @property
    def params(self) -> dict[str, Any]:
        """Fields as JSON has them: `make_dataset(name, **params)` is this dataset again."""
        values = {field.name: np.array(getattr(self, field.name)) for field in fields(self)}
        return {name: value.tolist() for name, value in values.items()}


@dataclass(frozen=True, kw_only=True)
class ResponseDataset(Dataset):
    """Bags with responses; a block may be a simulation of minutes.

    `generate` therefore makes each block in a task of its own. All blocks hold `block_bags` bags
    but the last one of a finite dataset; a bag may lack a response.
    """

    @property
    @abstractmethod
    def response_dims(self) -> int:
        """Coordinates of a response point."""

    @abstractmethod
    def response_block(self, index: int) -> ResponseBlock:
        """Make a block: bags and responses of float32 points, and the targets, float64."""

    def block(self, index: int) -> LabelledBlock:
        """Make a block without its responses."""
        bags, targets, _ = self.response_block(index)
        return bags, targets


@dataclass(frozen=True, kw_only=True)
class RandomDataset(Dataset):
    """Any number of bags drawn from random densities.

    Parameters
    ----------
    n_points : int or (lo, hi)
        Points in a bag, at least 1; a pair makes ragged bags, of sizes uniform in lo … hi, both
        included.
    """

    n_points: int | tuple[int, int] = 200

    def __post_init__(self) -> None:
        """Refuse parameters out of their range."""
        super().__post_init__()
        if isinstance(self.n_points, (list, tuple)):
            if len(self.n_points) != 2:
                raise ParameterError(f"n_points is {self.n_points}; expected a number or (lo, hi)")
            object.__setattr__(self, "n_points", tuple(self.n_points))
        lo, hi = self._size_range
        most = MAX_VALUES // self.n_dims
        Integer(1, most).check("n_points", lo)
        Integer(lo, most).check("n_points", hi)

    @property
    def _size_range(self) -> tuple[int, int]:
        return self.n_points if isinstance(self.n_points, tuple) else (self.n_points,) * 2

    @property
    def block_bags(self) -> int:
        """Bags in a block: fewer where they are large."""
        return max(1, min(BLOCK, BLOCK_VALUES // (self._size_range[1] * self.n_dims)))

    def _sizes(self, rng: np.random.Generator) -> Integers:
        """Draw the sizes of a block's bags, before anything else of the block."""
        lo, hi = self._size_range
        return rng.integers(lo, hi, self.block_bags, dtype=np.int64, endpoint=True)


def block_rng(seed: int, index: int) -> np.random.Generator:
    """Return the generator of one block: counter-based, keyed by seed and block index alone.

    The index is a spawn key and not a second word of entropy, so that no block shares its
    stream with ``SeedSequence(other_seed)``.
    """
    Integer(0).check("index", index)
    return np.random.Generator(np.random.Philox(np.random.SeedSequence(seed, spawn_key=(index,))))
