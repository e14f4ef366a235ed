"""``bags ingest``: reads long tables or an ``.npz`` file into a store."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from pydantic import Field, model_validator

from bagbasis.parameters.ingest import refuse_gone

from ..cluster import running_on
from ..configs import ClusterConfig, ReportConfig, with_parameters
from ..terminal import Terminal
from .stores.info import describe_responses, with_short_classes

if TYPE_CHECKING:
    from bagbasis.execution import Progress
    from bagbasis.ingest import Tally
    from bagbasis.store import BagStore

FOR_BOTH = ("points", "url", "targets", "box", "response_box", "dtype", "chunk_points")
MODES = ("mode", "overwrite")
OF_JOB = ("cluster", "report")

Values = list[str | dict[str, str]] | dict[str, str]


@with_parameters("TableIngest", "ingest", leave_out=("progress",))
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

    @model_validator(mode="before")
    @classmethod
    def _without_gone(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Leave out keys of older configs that had no effect; others are refused."""
        return refuse_gone(values)


def run(config: Config, console: Terminal) -> dict[str, Any]:
    """Ingest the tables; returns the report."""
    from bagbasis.ingest import Tally

    begun, tally = time.perf_counter(), Tally()
    with running_on(config.cluster), console.progress("ingest", "points") as progress:
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
    from bagbasis.errors import ConfigError
    from bagbasis.ingest import TableIngest, ingest_npz

    values = config.model_dump(exclude=set(OF_JOB)) | {"progress": progress}
    if not (isinstance(config.points, str) and config.points.lower().endswith(".npz")):
        for key in ("id_column", "coordinates"):
            if values[key] is None:
                raise ConfigError(f"missing key {key!r}; tables need id_column and coordinates")
        return TableIngest(**values).run(tally=tally)
    of_tables = [key for key in values if key not in (*FOR_BOTH, *MODES, "progress")]
    fields = Config.model_fields
    given = [key for key in of_tables if values.pop(key) != fields[key].get_default()]
    given += ["cluster"] if config.cluster != "none" else []
    if given:
        raise ConfigError(f"key {given[0]!r} is for tables; points is {config.points!r}")
    return ingest_npz(values.pop("points"), target_names=values.pop("targets") or (), **values)
