"""Generate a store and kill this process without warning: ``generating.py URL N_BAGS KILL_AT``."""

from __future__ import annotations

import importlib
import os
import signal
import sys

from bagbasis.datasets import GMMComponents, generate

DATASET = GMMComponents(n_points=(1, 9), seed=5)
CHUNK_POINTS = 100  # 1,600 rows a shard; a block has about 5,100


def small_waves() -> None:
    """Six shards a wave, one a task, instead of a gigabyte; and a commit after every block."""
    module = importlib.import_module("bagbasis.datasets.generate")
    module.TASK_VALUES = 1
    module.WAVE_TASKS = 6
    importlib.import_module("bagbasis.datasets.generate_blocks").COMMIT_SECONDS = 0


if __name__ == "__main__":
    url, n_bags, kill_at = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])

    def kill(done: int, total: int) -> None:
        if done >= kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    small_waves()
    generate(DATASET, url, n_bags, progress=kill, chunk_points=CHUNK_POINTS)
