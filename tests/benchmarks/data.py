"""The store the benchmarks share: mixtures of 200 points in R², made once."""

from __future__ import annotations

from pathlib import Path

from bagbasis import BagStore
from bagbasis.datasets import generate, make_dataset
from bagbasis.jobs.experiments.machine import peak_memory

OUTPUT = Path("bench-output")


def mixture_store(n_bags: int) -> BagStore:
    """``n_bags`` bags of 200 points in [−10, 10]² with the target n_components."""
    OUTPUT.mkdir(exist_ok=True)
    return generate(
        make_dataset("gmm_components", seed=7), OUTPUT / f"gmm-{n_bags}.zarr", n_bags=n_bags
    )


def peak_mib() -> float:
    """Peak resident memory of this process."""
    return peak_memory() / 2**20
