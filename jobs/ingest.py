"""``bags ingest``: long tables or an ``.npz`` file into a store."""

from __future__ import annotations

import time
from typing import Annotated, Any, Literal

from pydantic import Field

from .cluster import running_on
from .config import ClusterConfig, ReportConfig
from .info import describe_responses
from .terminal import Terminal

Range = Annotated[list[float], Field(min_length=2, max_length=2)]


class Config(ClusterConfig, ReportConfig):
    """See ``configs/ingest.yaml``."""

    points: str | list[str] = Field(description="table files, globs or directories; or one .npz")
    url: str = Field(description="the store to write")
    id_column: str | None = Field(default=None, description="column of the bag's id")
    coordinates: list[str] | None = Field(default=None, description="coordinate columns, in order")
    targets: list[str] | None = Field(default=None, description="target columns; arrays of an .npz")
    target_table: str | list[str] | None = Field(
        default=None, description="tables with the targets, one row a bag"
    )
    target_id_column: str | None = Field(
        default=None, description="the bag's id in the target table; null: named as id_column"
    )
    responses: str | list[str] | None = Field(
        default=None, description="tables with the responses, one row a point of one"
    )
    response_coordinates: list[str] | None = Field(
        default=None, description="coordinate columns of the responses, in order"
    )
    response_id_column: str | None = Field(
        default=None, description="the bag's id in the responses; null: named as id_column"
    )
    box: list[Range] | None = Field(
        default=None, description="[lo, hi] of each coordinate; null: measured from the data"
    )
    response_box: list[Range] | None = Field(
        default=None, description="[lo, hi] of each coordinate of the responses; null: measured"
    )
    dtype: Literal["float32", "float64"] = Field(
        default="float32", description="of the stored points"
    )
    chunk_points: int | None = Field(default=None, gt=0, description="points in a stored chunk")
    overwrite: bool = Field(default=False, description="replace a store that is there")


def run(config: Config, console: Terminal) -> dict[str, Any]:
    """Ingest the tables; returns the report."""
    begun = time.perf_counter()
    with running_on(config.cluster), console.progress("ingest", "points") as progress:
        store = _ingest(config, progress)
    report = {
        "url": store.url,
        "n_bags": store.n_bags,
        "n_points": store.n_points,
        "n_dims": store.n_dims,
        "targets": list(store.target_names),
        "classes": {name: list(values) for name, values in store.meta.class_names.items()},
        "box": store.box.bounds,
        **describe_responses(store),
        "seconds": time.perf_counter() - begun,
    }
    console.values("Ingested", report)
    return report


def _ingest(config: Config, progress: Any) -> Any:
    if isinstance(config.points, str) and config.points.lower().endswith(".npz"):
        return _ingest_npz(config, config.points, progress)
    from bagbasis.errors import ConfigError
    from bagbasis.ingest.tables import ingest_tables

    if config.id_column is None or config.coordinates is None:
        missing = "id_column" if config.id_column is None else "coordinates"
        raise ConfigError(f"missing key {missing!r}; tables need id_column and coordinates")
    return ingest_tables(
        config.points,
        config.url,
        id_column=config.id_column,
        coordinates=config.coordinates,
        targets=config.targets,
        target_table=config.target_table,
        target_id_column=config.target_id_column,
        responses=config.responses,
        response_coordinates=config.response_coordinates,
        response_id_column=config.response_id_column,
        box=config.box,
        response_box=config.response_box,
        dtype=config.dtype,
        overwrite=config.overwrite,
        chunk_points=config.chunk_points,
        progress=progress,
    )


def _ingest_npz(config: Config, path: str, progress: Any) -> Any:
    from bagbasis.errors import ConfigError
    from bagbasis.ingest.arrays import ingest_npz

    of_tables = (
        *("id_column", "coordinates", "target_table", "target_id_column"),
        *("responses", "response_coordinates", "response_id_column"),
    )
    given = [key for key in of_tables if getattr(config, key) is not None]
    given += ["cluster"] if config.cluster != "none" else []
    if given:
        raise ConfigError(f"key {given[0]!r} is for tables; points is {path!r}")
    return ingest_npz(
        path,
        config.url,
        target_names=config.targets or (),
        box=config.box,
        response_box=config.response_box,
        dtype=config.dtype,
        overwrite=config.overwrite,
        chunk_points=config.chunk_points,
        progress=progress,
    )
