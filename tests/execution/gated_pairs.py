"""Bags with responses behind a gate; see `gated`."""

from __future__ import annotations

from bagbasis.regression.pairs import StorePairs
from tests.execution.gated import Gate


class GatedPairs(StorePairs):
    """A store's pairs, the second partition of which lies behind the gate beside the store."""

    def batches(self, start, stop):
        for i, batch in enumerate(super().batches(start, stop)):
            if i == 1:
                Gate(f"{self.url}.gate").wait()
            yield batch
