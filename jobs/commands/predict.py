"""``bags predict``: a model's predictions for the bags of a store, with their ids."""

from __future__ import annotations

import time
from typing import Any, Literal

from pydantic import Field

from ..cluster import running_on
from ..configs import ClusterConfig, ReportConfig
from ..terminal import Terminal


class Config(ClusterConfig, ReportConfig):
    """See ``configs/predict.yaml``."""

    data_url: str = Field(
        examples=["example-output/bags.zarr"], description="the store of bags, labelled or not"
    )
    model_url: str = Field(examples=["example-output/model.zarr"], description="the model")
    output_url: str = Field(
        examples=["example-output/predictions.parquet"], description="where the predictions go"
    )
    format: Literal["parquet", "zarr", "csv"] | None = Field(
        default=None, description="default what output_url ends in; Parquet if in nothing"
    )
    columns: list[Literal["std", "leverage", "mahalanobis", "lower", "upper", "outside"]] = Field(
        default=[],
        description="more columns; std, leverage and mahalanobis need a model with uncertainty: "
        "true, lower and upper one with a holdout or interval_folds; outside is the share of "
        "points outside the box",
    )
    coverage: float = Field(default=0.9, gt=0, lt=1, description="of lower ... upper")
    overwrite: bool = Field(default=False, description="replace predictions that are there")


def run(config: Config, console: Terminal) -> dict[str, Any]:
    """Predict and write; returns the report."""
    from bagbasis import BagStore
    from bagbasis.models import write_predictions
    from bagbasis.models.predictions.formats import format_of

    from .model_place import open_model

    begun = time.perf_counter()
    form = format_of(config.output_url, config.format, "parquet")
    model = open_model(config.model_url)
    store = BagStore.open(config.data_url)
    with running_on(config.cluster, store.url), console.progress("predict") as progress:
        write_predictions(
            model,
            store,
            config.output_url,
            format=form,
            columns=config.columns,
            coverage=config.coverage,
            overwrite=config.overwrite,
            progress=progress,
        )
    seconds = time.perf_counter() - begun
    report = {
        "output_url": config.output_url,
        "data_url": store.url,
        "model_url": config.model_url,
        "format": form,
        "n_bags": store.n_bags,
        "targets": list(model.target_names_),
        "seconds": seconds,
    }
    console.values("Predicted", report)
    return report
