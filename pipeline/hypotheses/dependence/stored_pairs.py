"""Bags of a store and one of its targets: pairs of rows that are summed in one pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from ...core.arrays import Floats
from ...core.errors import DataError
from ...core.sums import Sums
from ...data.labelled.labelled import Batch, LabelledBags
from ...data.labelled.labels import Targets
from ...data.store.sampling import MEDIAN_ROWS, RunSample
from ...data.store.store import BagStore
from ...execution.passes import batch_reduction, run_pass
from ..samples.row_sources import EmbedBags, EmbeddedRows
from ..samples.samples import read_samples
from ..samples.variables import VariableLike, target_rows
from .pairs import PairMap

SumsState = TypeVar("SumsState", bound=Sums)


@dataclass(frozen=True, eq=False)
class StoredPairs:
    """Embedded bags of a store, paired with their target; unlabelled bags are left out.

    Attributes
    ----------
    bags : LabelledBags
    embed : EmbedBags
    target : str
    """

    bags: LabelledBags
    embed: EmbedBags
    target: str

    @classmethod
    def of(cls, x: VariableLike, target: str, seed: int) -> StoredPairs:
        """Decide the embedding and the size that bags are thinned to, as `read_samples` does."""
        data = read_samples({"x": x}, seed=seed)[0].data
        assert isinstance(data, EmbeddedRows)
        assert isinstance(data.bags.data, BagStore)
        data.bags.data.target_columns([target])
        labelled = replace(data.bags, labels=Targets((target,)))
        return cls(labelled, EmbedBags(data.spec, data.size, data.seed), target)

    def some(self) -> tuple[Floats, Floats]:
        """Return the rows of about 1,024 evenly spread bags."""
        ranges = RunSample.of_about(MEDIAN_ROWS).ranges(self.bags.start, self.bags.end)
        pairs = [self._rows(batch) for batch in self.bags.batches_of(ranges) if len(batch)]
        if not pairs:
            raise DataError(f"{self.bags.url}: no bag of the sample has the target {self.target!r}")
        X, Y = zip(*pairs, strict=True)
        return np.concatenate(X), np.concatenate(Y)

    def sums(self, pair_map: PairMap) -> Any:  # noqa: ANN401 - the map's kind of sums
        """Return the sums over all pairs, in one pass on the open cluster."""
        cost = self.embed.spec.cost + pair_map.cost
        sums = run_pass(self.bags, batch_reduction("pairs", partial(self._sum, pair_map), cost))
        if sums is None:
            raise DataError(f"{self.bags.url}: no bag has the target {self.target!r}")
        return sums

    def _sum(self, pair_map: Callable[..., SumsState], batch: Batch) -> SumsState:
        return pair_map(*self._rows(batch))

    def _rows(self, batch: Batch) -> tuple[Floats, Floats]:
        large = batch.bags.sizes >= (self.embed.size or 1)
        store = self.bags.data
        assert isinstance(store, BagStore)
        return self.embed(batch.bags), target_rows(store, self.target, batch.labels[large])
