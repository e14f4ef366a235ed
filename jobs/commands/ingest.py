"""``bags ingest``: reads tables, an ``.npz`` file, or files that are a bag each, into a store."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from pydantic import Field, model_validator

from bagbasis.core.parameters.ingest import refuse_gone
from bagbasis.ingest import TableIngest

from ..cluster import running_on
from ..configs import ClusterConfig, ReportConfig, with_parameters
from ..terminal import Terminal
from .stores.info import describe_responses, with_short_classes

if TYPE_CHECKING:
    from bagbasis import BagStore, Progress
    from bagbasis.ingest.tables import Tally

FOR_BOTH = ("points", "url", "targets", "box", "response_box", "dtype", "chunk_points")
MODES = ("mode", "overwrite")
OF_JOB = ("cluster", "report")
OF_FCS = ("cofactor", "compensate")
PATCHES, FCS = (".h5", ".hdf5"), (".fcs",)  # files that are a bag each
FOR_BAG_FILES = (
    *("points", "url", "coordinates", "targets", "target_table", "target_id_column", "read"),
    *("box", "dtype", "chunk_points", *MODES, "known_ids"),
)

Values = list[str | dict[str, str]] | dict[str, str]


@with_parameters(
    TableIngest,
    leave_out=("progress",),
    examples={"points": ["tables/points-*.parquet"], "url": "example-output/ingested.zarr"},
)
class _Tables(ClusterConfig, ReportConfig):
    """Parameters of `bagbasis.ingest.ingest_tables`."""

    if TYPE_CHECKING:  # what is read here
        points: str | list[str]
        url: str
        box: Any = None
        response_box: Any = None
        dtype: Any = "float32"
        chunk_points: int | None = None
        mode: str = "create"
        overwrite: bool = False


class Config(_Tables):
    """See ``configs/ingest.yaml``."""

    id_column: str | list[str] | None = Field(default=None, description="of the bag's id")
    coordinates: Values | None = Field(default=None, description="columns or expressions, in order")
    targets: Values | None = Field(
        default=None, description="columns or expressions; arrays of an .npz"
    )

    cofactor: float | dict[str, float] | None = Field(
        default=None, description="of .fcs files: arcsinh(x / cofactor); null: 150"
    )
    compensate: bool = Field(default=False, description="of .fcs files: divide spillover out")

    @model_validator(mode="before")
    @classmethod
    def _without_gone(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Leave out keys of older configs that had no effect; others are refused."""
        return refuse_gone(values)


def run(config: Config, console: Terminal) -> dict[str, Any]:
    """Ingest the tables; returns the report."""
    from bagbasis.ingest.tables import Tally

    begun, tally = time.perf_counter(), Tally()
    unit = "files" if _are_bag_files(config) else "points"
    with running_on(config.cluster), console.progress("ingest", unit) as progress:
        store = _ingest(config, progress, tally)
    report = {
        "url": store.url,
        "n_bags": store.n_bags,
        "n_points": store.n_points,
        "n_dims": store.n_dims,
        "targets": list(store.target_names),
        "classes": {name: list(values) for name, values in store.meta.class_names.items()},
        "box": store.box.bounds,
        **describe_responses(store),
        **{f"n_{name}": count for name, count in tally.counts().items()},
        "seconds": time.perf_counter() - begun,
    }
    console.values("Ingested", with_short_classes(report))
    return report


def _ingest(config: Config, progress: Progress, tally: Tally) -> BagStore:
    from bagbasis.core.errors import ConfigError
    from bagbasis.ingest import TableIngest, ingest_npz

    if _are_bag_files(config):
        return _ingest_bag_files(config, progress)
    values = config.model_dump(exclude=set(OF_JOB)) | {"progress": progress}
    if not (isinstance(config.points, str) and config.points.lower().endswith(".npz")):
        for key in ("id_column", "coordinates"):
            if values[key] is None:
                raise ConfigError(f"missing key {key!r}; tables need id_column and coordinates")
        for key in OF_FCS:
            if values.pop(key) != Config.model_fields[key].get_default():
                raise ConfigError(f"key {key!r} is for .fcs files; points is {config.points!r}")
        return TableIngest(**values).run(tally=tally)
    of_tables = [key for key in values if key not in (*FOR_BOTH, *MODES, "progress")]
    fields = Config.model_fields
    given = [key for key in of_tables if values.pop(key) != fields[key].get_default()]
    given += ["cluster"] if config.cluster != "none" else []
    if given:
        raise ConfigError(f"key {given[0]!r} is for tables; points is {config.points!r}")
    return ingest_npz(values.pop("points"), target_names=values.pop("targets") or (), **values)


def _are_bag_files(config: Config) -> bool:
    return all(path.lower().endswith(PATCHES + FCS) for path in _paths(config))


def _paths(config: Config) -> list[str]:
    return [config.points] if isinstance(config.points, str) else list(config.points)


def _ingest_bag_files(config: Config, progress: Progress) -> BagStore:
    """Ingest files that are a bag each: slides in HDF5, or FCS."""
    from bagbasis.core.errors import ConfigError
    from bagbasis.ingest import ingest_fcs, ingest_patches

    is_fcs = all(path.lower().endswith(FCS) for path in _paths(config))
    used = (*FOR_BAG_FILES, *(OF_FCS if is_fcs else ()))
    values = config.model_dump(exclude=set(OF_JOB))
    for key, field in Config.model_fields.items():
        if key not in (*used, "report") and getattr(config, key) != field.get_default():
            what = "files that are a bag each have no such key"
            raise ConfigError(f"key {key!r} is for tables; points is {config.points!r}: {what}")
    given = {key: values[key] for key in used if values[key] is not None}
    return (ingest_fcs if is_fcs else ingest_patches)(**given, progress=progress)
