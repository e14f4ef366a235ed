"""Base classes of datasets, which make any block of their bags from a seed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np

from ..core import Integer, Pair, documented, keep_checked
from ..core.arrays import Floats, Integers
from ..data.bags.bags import Bags
from ..data.bags.responses import Responses

BLOCK = 1024
"""Number of bags that a dataset makes at a time; their points take a few MiB."""
MAX_BAG_VALUES = 2**28  # largest number of coordinates in a bag, which is made in memory: 1 GiB
_BLOCK_VALUES = 2**21  # largest number of coordinates in a block: 8 MiB

LabelledBlock = tuple[Bags, Floats]
DatasetSeed = Annotated[int, Integer(0, 2**32 - 1)]
BagSize = Annotated[int | tuple[int, int], Integer(1) | Pair(Integer(1), Integer(1))]


class ResponseBlock(NamedTuple):
    """A block of bags with targets, shape (n, len(target_names)), and responses.

    ``responses`` is None for a dataset without responses.
    """

    bags: Bags
    targets: Floats
    responses: Responses | None


@documented
@dataclass(frozen=True, kw_only=True)
class Dataset(ABC):
    """A sequence of labelled bags, made block by block.

    Block i depends on the fields and i only, so that any process can make any block.

    Parameters
    ----------
    seed
        Seed for drawing the bags. Different seeds give independent bags of the same kind.

    Attributes
    ----------
    name : str
        Name of the dataset in `DATASETS`.
    box : sequence of (lo, hi), one per dimension, or None for the unit cube
        Range in which the points lie.
    class_names : mapping from target name to the names of its classes
        Names of the classes of targets that are class labels.

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

    seed: DatasetSeed = 0

    def __post_init__(self) -> None:
        """Check the declared parameters."""
        keep_checked(self)

    @property
    @abstractmethod
    def n_dims(self) -> int:
        """Number of coordinates of a point."""

    @property
    @abstractmethod
    def target_names(self) -> tuple[str, ...]:
        """Names of the target columns."""

    @property
    def response_dims(self) -> int | None:
        """Number of coordinates of a response point; None for bags without responses."""
        return None

    @property
    def response_box(self) -> Sequence[tuple[float, float]] | None:
        """Range in which the points of the responses lie, in the form of ``box``."""
        return None

    @property
    def n_bags(self) -> int | None:
        """Number of bags; None if the dataset has no end."""
        return None

    @property
    def block_bags(self) -> int:
        """Number of bags in a block; the last block of a finite dataset may have fewer."""
        return BLOCK

    @abstractmethod
    def block(self, index: int) -> LabelledBlock:
        """Return bags (float32) and targets (float64, (n, len(target_names))) of a block."""

    @property
    def params(self) -> dict[str, Any]:
        """Fields for JSON; `make_dataset(name, **params)` returns an equal dataset."""
        values = {field.name: np.array(getattr(self, field.name)) for field in fields(self)}
        return {name: value.tolist() for name, value in values.items()}


@dataclass(frozen=True, kw_only=True)
class ResponseDataset(Dataset):
    """Base class of datasets with responses.

    Making a block may take minutes, for example if it is a simulation. `generate` therefore makes
    each block in a separate task. Each block has `block_bags` bags, except the last block of a
    finite dataset. A bag may have no response.
    """

    @property
    @abstractmethod
    def response_dims(self) -> int:
        """Number of coordinates of a response point."""

    @abstractmethod
    def response_block(self, index: int) -> ResponseBlock:
        """Return bags and responses (float32 points) and targets (float64) of a block."""

    def block(self, index: int) -> LabelledBlock:
        """Return the bags and targets of a block, without responses."""
        bags, targets, _ = self.response_block(index)
        return bags, targets


@documented
@dataclass(frozen=True, kw_only=True)
class RandomDataset(Dataset):
    """Base class of datasets with any number of bags, drawn from random densities.

    Parameters
    ----------
    n_points : int or (lo, hi)
        Number of points in a bag, at least 1. A pair gives bags of different sizes, which are
        uniform in lo … hi, both included.
    """

    n_points: BagSize = 200

    def __post_init__(self) -> None:
        """Check that a bag fits in memory."""
        super().__post_init__()
        lo, hi = self._size_range
        most = MAX_BAG_VALUES // self.n_dims
        Integer(1, most).check("n_points", lo)
        Integer(lo, most).check("n_points", hi)

    @property
    def _size_range(self) -> tuple[int, int]:
        return self.n_points if isinstance(self.n_points, tuple) else (self.n_points,) * 2

    @property
    def block_bags(self) -> int:
        """Number of bags in a block; blocks of large bags have fewer bags."""
        return max(1, min(BLOCK, _BLOCK_VALUES // (self._size_range[1] * self.n_dims)))

    def _sizes(self, rng: np.random.Generator) -> Integers:
        """Draw the sizes of the bags of a block; this is the first draw of a block."""
        lo, hi = self._size_range
        return rng.integers(lo, hi, self.block_bags, dtype=np.int64, endpoint=True)


def block_rng(seed: int, index: int) -> np.random.Generator:
    """Return the random generator of one block, which depends on the seed and block index only.

    The index is a spawn key instead of a second word of entropy, so that no block has the same
    stream as ``SeedSequence(other_seed)``.
    """
    Integer(0).check("index", index)
    return np.random.Generator(np.random.Philox(np.random.SeedSequence(seed, spawn_key=(index,))))
