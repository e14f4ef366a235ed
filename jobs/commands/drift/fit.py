"""``bags drift fit``: keep a reference, a few megabytes, that later data are compared with."""

from __future__ import annotations

import time
from typing import Any, ClassVar

from pydantic import Field

from ...cluster import running_on
from ...configs.config import ReportConfig
from ...configs.sections import EmbeddingSection, build
from ...terminal import Terminal
from .common import WatchedConfig, read_watched


class Config(ReportConfig, WatchedConfig):
    """Keys of ``configs/drift-fit.yaml``."""

    RENAMED_OF: ClassVar[str] = "bags drift fit"

    overwrite: bool = Field(default=False, description="replace a detector that is there")
    embedding: EmbeddingSection | None = Field(
        default=None, description="what a bag becomes; null: a mean map"
    )
    level: float = Field(default=0.05, description="chance of a false alarm, per test")
    n_permutations: int = Field(default=999, ge=1, description="permutations of each test")
    n_frequencies: int | None = Field(
        default=None, description="random frequencies per width; null: 64, of few rows 256"
    )
    standardize: bool = Field(
        default=True, description="columns of a table in units of their standard deviations"
    )
    thin: bool | int = Field(default=True, description="points that bags are thinned to")
    seed: int = Field(default=0, ge=0, description="random seed")


def run(config: Config, console: Terminal) -> dict[str, Any]:
    """Fit and save; returns the report."""
    from bagbasis.operations import DriftDetector

    begun = time.perf_counter()
    data, store_url = read_watched(config)
    detector = DriftDetector(
        None if config.embedding is None else build(config.embedding),
        level=config.level,
        n_permutations=config.n_permutations,
        n_frequencies=config.n_frequencies,
        standardize=config.standardize,
        thin=config.thin,
        seed=config.seed,
    )
    with running_on(config.cluster, store_url):
        detector.fit(data)
    detector.save(config.detector_url, overwrite=config.overwrite)
    reference = detector.reference_
    report = {
        "data_url": config.data_url,
        "detector_url": config.detector_url,
        "kind": reference.watched.kind,
        "n_reference": reference.n_rows,
        "columns": list(reference.watched.columns),
        "kernels": str(reference.scales),
        "seconds": time.perf_counter() - begun,
    }
    console.values("The reference is kept", {k: v for k, v in report.items() if k != "columns"})
    return report
