"""An experiment of the registry, and a point that was measured."""

from __future__ import annotations

from pathlib import Path

from bagbasis.jobs.experiments.kit import Point, Result
from bagbasis.jobs.experiments.registered import experiment_type


def make(name, out_dir=Path("unused"), scale="small", seed=0):
    """An experiment of the registry."""
    return experiment_type(name)(scale, seed, out_dir)


def result(values, took=1.0, **params):
    """A point that was measured."""
    return Result(Point("", params), values, took)
