"""``bags drift fit``: keep a reference, a few megabytes, that later data are compared with."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from bagbasis.core import parameters_of
from bagbasis.operations import DriftDetector

from ...cluster import running_on
from ...configs.config import ReportConfig
from ...configs.sections import EmbeddingSection, build, parameter_of, with_parameters
from ...terminal import Terminal
from .common import WatchedConfig, read_watched, refuse_unnamed

_SETTINGS = parameters_of(DriftDetector).keys() - {"embedding"}


@with_parameters({"overwrite": parameter_of(DriftDetector.save, "overwrite")})
@with_parameters(DriftDetector, only=_SETTINGS)
class Config(ReportConfig, WatchedConfig):
    """Keys of ``configs/drift-fit.yaml``."""

    RENAMED_OF: ClassVar[str] = "bags drift fit"

    if TYPE_CHECKING:
        overwrite: bool

    embedding: EmbeddingSection | None = Field(
        default=None, description="what a bag becomes; null: a mean map"
    )


def run(config: Config, console: Terminal) -> dict[str, Any]:
    """Fit and save; returns the report."""
    begun = time.perf_counter()
    data, store_url = read_watched(config)
    if config.columns is None:
        refuse_unnamed(data, config.data_url)
    detector = DriftDetector(
        None if config.embedding is None else build(config.embedding),
        **config.model_dump(include=_SETTINGS),
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
