"""Generate responses and kill this process: ``generating_responses.py URL N_BAGS KILL_AT``."""

from __future__ import annotations

import importlib
import os
import signal
import sys
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bagbasis.bags import Bags, Responses
from bagbasis.bags.bags import offsets_of
from bagbasis.datasets import generate
from bagbasis.datasets.base import ResponseBlock, ResponseDataset, block_rng


@dataclass(frozen=True, kw_only=True)
class Shifted(ResponseDataset):
    """Ragged bags in the unit square; the response has two points less, so that some have none."""

    name: ClassVar[str] = "shifted"
    block_bags: ClassVar[int] = 50

    short: bool = False

    @property
    def n_dims(self) -> int:
        return 2

    @property
    def target_names(self) -> tuple[str, ...]:
        return ("size",)

    @property
    def response_dims(self) -> int:
        return 3

    @property
    def response_box(self) -> list[tuple[float, float]]:
        return [(0, 2)] * 3

    def response_block(self, index: int) -> ResponseBlock:
        rng = block_rng(self.seed, index)
        n_bags = self.block_bags - (self.short and index == 2)
        sizes = rng.integers(1, 9, n_bags)
        bags = Bags.trusted(rng.random((sizes.sum(), 2), np.float32), offsets_of(sizes))
        lengths = np.maximum(sizes - 2, 0)
        responses = Responses(2 * rng.random((lengths.sum(), 3), np.float32), offsets_of(lengths))
        return ResponseBlock(bags, sizes[:, None].astype(float), responses)


DATASET = Shifted(seed=5)


def commit_each_block() -> None:
    """Instead of every half minute."""
    importlib.import_module("bagbasis.datasets.generate_blocks").COMMIT_SECONDS = 0


if __name__ == "__main__":
    url, n_bags, kill_at = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])

    def kill(done: int, total: int) -> None:
        if done >= kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    commit_each_block()
    generate(DATASET, url, n_bags, progress=kill, chunk_points=10)
