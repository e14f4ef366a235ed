"""``bags fit``: a Double-Basis model of the bags in a store."""

from __future__ import annotations

import time
from typing import Any

from pydantic import Field

from .cluster import running_on
from .config import ClusterConfig, ReportConfig
from .model_config import ModelSection
from .terminal import Terminal


class Config(ClusterConfig, ReportConfig):
    """See ``configs/fit.yaml``."""

    data_url: str = Field(description="the store of labelled bags")
    model_url: str = Field(description="where the model goes")
    target: str | list[str] | None = Field(
        default=None, description="target, or list of them; null: the only one"
    )
    holdout: float = Field(
        default=0.0, ge=0, lt=1, description="fraction of the bags kept out, for evaluate"
    )
    model: ModelSection = Field(default=ModelSection(), description="what is fitted")
    overwrite: bool = Field(default=False, description="replace a model that is there")


def run(config: Config, console: Terminal) -> dict[str, Any]:
    """Fit and save the model; returns the report."""
    from pipeline import BagStore
    from pipeline.bags.urls import exists, normalize_url
    from pipeline.errors import ConfigError, ModelError, ParameterError

    begun = time.perf_counter()
    url = normalize_url(config.model_url)
    if exists(url) and not config.overwrite:
        raise ModelError(f"{url}: exists already; choose another model_url or set overwrite=true")
    store = BagStore.open(config.data_url)
    model = config.model.estimator()
    with running_on(config.cluster), console.progress("fit") as progress:
        try:
            model.fit(store, target=config.target, holdout=config.holdout, progress=progress)
        except ParameterError as error:
            raise ConfigError(f"section 'model': {error}") from error
    model.save(url, overwrite=config.overwrite)
    report = {
        "model_url": url,
        "data_url": store.url,
        "targets": list(model.target_names_),
        "alpha": model.alpha_,
        **model.report_,
        "seconds_in_all": time.perf_counter() - begun,
    }
    console.values("Fitted", report)
    return report
