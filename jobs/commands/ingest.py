"""``bags ingest``: reads tables, an ``.npz`` file, or files that are a bag each, into a store."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from bagbasis.core import parameters_of
from bagbasis.ingest.registry import arguments_of, format_of_files, parameters_of_formats
from bagbasis.ingest.tables import Tally

from ..cluster import running_on
from ..configs.config import ClusterConfig, ReportConfig
from ..configs.sections import with_parameters
from ..terminal import Terminal
from .stores.info import describe_responses, with_short_classes

if TYPE_CHECKING:
    from bagbasis import Progress
    from bagbasis.ingest.registry import FileFormat


@with_parameters(
    parameters_of_formats(),
    leave_out=("progress",),
    examples={"points": ["tables/points-*.parquet"], "url": "example-output/ingested.zarr"},
)
class Config(ClusterConfig, ReportConfig):
    """Keys of ``configs/ingest.yaml``."""

    if TYPE_CHECKING:  # what is read here
        points: str | list[str]


def run(config: Config, console: Terminal) -> dict[str, Any]:
    """Ingest the files; returns the report."""
    points, begun = config.points, time.perf_counter()
    kind = format_of_files([points] if isinstance(points, str) else points)
    with running_on(config.cluster), console.progress("ingest", kind.unit) as progress:
        store, counts = _ingest_of(kind, config, progress).run_counted()
    report = {
        "url": store.url,
        "n_bags": store.n_bags,
        "n_points": store.n_points,
        "n_dims": store.n_dims,
        "targets": list(store.target_names),
        "classes": {name: list(values) for name, values in store.meta.class_names.items()},
        "box": store.box.bounds,
        **describe_responses(store),
        **{f"n_{name}": count for name, count in {**Tally().counts(), **counts}.items()},
        "seconds": time.perf_counter() - begun,
    }
    console.values("Ingested", with_short_classes(report))
    return report


def _ingest_of(kind: type[FileFormat], config: Config, progress: Progress) -> FileFormat:
    """Return the ingest of a config; ConfigError for keys of other formats."""
    without = {"report"} | ({"cluster"} if kind.uses_cluster else set())
    values = config.model_dump(exclude=without)
    defaults = {
        name: field.get_default()
        for name, field in Config.model_fields.items()
        if not field.is_required()
    }
    arguments = arguments_of(kind, values, defaults)
    if "progress" in parameters_of(kind):
        arguments["progress"] = progress
    return kind(**arguments)
