"""``bags predict``: a model's predictions for the bags of a store, with their ids."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from pydantic import Field

from bagbasis.models import write_predictions

from ..cluster import running_on
from ..configs.config import ClusterConfig, ModelUrl, ReportConfig
from ..configs.sections import with_parameters
from ..terminal import Terminal


@with_parameters(write_predictions, only=("format", "columns", "coverage", "overwrite"))
class _Written(ClusterConfig, ReportConfig):
    """What is written of predictions, and how."""

    if TYPE_CHECKING:  # what is read here
        format: str | None
        columns: list[str]
        coverage: float
        overwrite: bool


class Config(_Written):
    """Keys of ``configs/predict.yaml``."""

    data_url: str = Field(
        examples=["example-output/bags.zarr"], description="the store of bags, labelled or not"
    )
    model_url: ModelUrl
    output_url: str = Field(
        examples=["example-output/predictions.parquet"], description="where the predictions go"
    )


def run(config: Config, console: Terminal) -> dict[str, Any]:
    """Predict and write; returns the report."""
    from bagbasis import BagStore
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
