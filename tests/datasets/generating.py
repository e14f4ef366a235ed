"""Datasets of ragged bags, and a process that dies without warning while it makes a store."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bagbasis import Bags, Responses
from bagbasis.datasets import GMMComponents, generate
from bagbasis.datasets.base import ResponseBlock, ResponseDataset, block_rng


@dataclass(frozen=True, kw_only=True)
class Shifted(ResponseDataset):
    """Ragged bags in the unit square; the response has two points less, so that some have none."""

    name: ClassVar[str] = "shifted"
    block_bags: ClassVar[int] = 50
    n_dims = 2
    target_names = ("size",)
    response_dims = 3
    response_box = ((0, 2),) * 3

    short: bool = False

    def response_block(self, index: int) -> ResponseBlock:
        """Make a block; one bag is missing of block 2 of a short dataset."""
        rng = block_rng(self.seed, index)
        n_bags = self.block_bags - (self.short and index == 2)
        sizes = rng.integers(1, 9, n_bags)
        bags = Bags.trusted(
            rng.random((sizes.sum(), 2), np.float32), np.append(0, np.cumsum(sizes))
        )
        lengths = np.maximum(sizes - 2, 0)
        responses = Responses(
            2 * rng.random((lengths.sum(), 3), np.float32), np.append(0, np.cumsum(lengths))
        )
        return ResponseBlock(bags, sizes[:, None].astype(float), responses)


RAGGED = GMMComponents(n_points=(1, 9), seed=5)
SHIFTED = Shifted(seed=5)
KILLED = {"bags": (RAGGED, 60_000), "responses": (SHIFTED, 430)}  # datasets, and bags to make


def generate_and_die(_: object, name: str, url: str, kill_at: int) -> None:
    """Make a store until so many bags are done; then end as a lost machine would."""
    dataset, n_bags = KILLED[name]

    def kill(done: int, total: int) -> None:
        if done >= kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    generate(dataset, url, n_bags=n_bags, progress=kill, chunk_points=10**4, commit_seconds=0)
