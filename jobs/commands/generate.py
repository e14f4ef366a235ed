"""``bags generate``: writes bags of a built-in dataset into a store."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from pydantic import Field

from bagbasis.core.errors import ConfigError, ParameterError, closest
from bagbasis.datasets import DATASETS, Dataset, generate, make_dataset

from ..cluster import running_on
from ..configs.config import ClusterConfig, ReportConfig
from ..configs.sections import check_keys, parameters_field, with_parameters
from ..terminal import Terminal

# without those of other packages and of experiments
_BUNDLED = {name: kind for name, kind in DATASETS.own.items() if ".datasets." in kind.__module__}
_SETTINGS = {"n_bags", "overwrite", "chunk_points"}


@with_parameters(generate, only=_SETTINGS, examples={"n_bags": 20000})
class Config(ClusterConfig, ReportConfig):
    """Keys of ``configs/generate.yaml``."""

    dataset: str = Field(examples=["gmm_components"], description="name of the dataset")
    params: dict[str, Any] = parameters_field(
        "dataset", _BUNDLED, examples=[{"n_points": 200, "seed": 0}]
    )
    url: str = Field(examples=["example-output/bags.zarr"], description="the store to write")
    if TYPE_CHECKING:
        n_bags: int | None = None


def run(config: Config, console: Terminal) -> dict[str, Any]:
    """Generate the store; returns the report."""
    begun = time.perf_counter()
    dataset = make_configured(config)
    with running_on(config.cluster), console.progress(f"generate {config.dataset}") as progress:
        store = generate(
            dataset,
            config.url,
            progress=progress,
            **config.model_dump(include=_SETTINGS),
        )
    report = {
        "url": store.url,
        "n_bags": store.n_bags,
        "n_points": store.n_points,
        "n_dims": store.n_dims,
        "targets": list(store.target_names),
        "dataset": dataset.name,
        "params": dataset.params,
        "seconds": time.perf_counter() - begun,
    }
    console.values(f"Generated {config.dataset}", report)
    return report


def make_configured(config: Config) -> Dataset:
    """Return the dataset of a config; a ConfigError names the key that is wrong."""
    if config.dataset not in DATASETS:
        raise ConfigError(
            f"key 'dataset' is {config.dataset!r}; expected one of "
            f"{', '.join(DATASETS)}{closest(config.dataset, DATASETS)}"
        )
    check_keys("params", config.params, config.dataset, DATASETS[config.dataset])
    try:
        return make_dataset(config.dataset, **config.params)
    except ParameterError as error:
        raise ConfigError(f"key 'params': {error}") from error
