"""``bags test two-sample``: whether two sets of bags have the same distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import Field

from bagbasis.core.errors import ConfigError
from bagbasis.hypotheses import TWO_SAMPLE, two_sample_test

from ...cluster import running_on
from ...configs.config import ClusterConfig
from ...configs.sections import EmbeddingSection, build, parameters_field, with_parameters
from ...terminal import Terminal
from .common import BagRange, TestConfig, conclude, named_statistic, statistic_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bagbasis import BagStore

_SETTINGS = {
    "kernel",
    "bandwidth",
    "null",
    "n_permutations",
    "seed",
    "unit",
    "thin",
    "correlation_length",
    "standardize",
}


@with_parameters(two_sample_test, only=_SETTINGS)
class Config(TestConfig, ClusterConfig):
    """Keys of ``configs/test-two-sample.yaml``."""

    a_url: str = Field(
        examples=["example-output/bags.zarr"], description="the store of the first sample"
    )
    a_bags: BagRange = Field(default=None, examples=[[0, 1000]])
    b_url: str | None = Field(
        default=None, description="the store of the second sample; null: that of the first"
    )
    b_bags: BagRange = Field(default=None, examples=[[1000, 2000]])
    parameters: dict[str, Any] = parameters_field("statistic", TWO_SAMPLE)
    statistic: str | None = statistic_of(
        two_sample_test, TWO_SAMPLE, null="fuse_ranks, or mmd_u with a bandwidth"
    )
    embedding: EmbeddingSection | None = Field(
        default=None, description="what a bag becomes; null: a mean map"
    )


def run(config: Config, console: Terminal) -> dict[str, Any]:
    """Test; writes the picture, returns the report."""
    from bagbasis import BagStore
    from bagbasis.data.storage.urls import is_same_place

    statistic = named_statistic(TWO_SAMPLE, config.statistic, config.parameters)
    store = BagStore.open(config.a_url)
    other = store if config.b_url is None else BagStore.open(config.b_url)
    a = (store, *(config.a_bags or (0, store.n_bags)))
    b = (other, *(config.b_bags or (0, other.n_bags)))
    start, stop = max(a[1], b[1]), min(a[2], b[2])
    if start < stop and is_same_place(store.url, other.url):
        raise ConfigError(
            f"both samples have the bags {start} to {stop - 1} of {store.url}: give b_url, or "
            "a_bags and b_bags"
        )
    groups = config.groups and (_labels(config.groups, *a), _labels(config.groups, *b))
    with running_on(config.cluster, store.url):
        result = two_sample_test(
            a,
            b,
            statistic=statistic,
            groups=groups or None,
            embedding=None if config.embedding is None else build(config.embedding),
            **config.model_dump(include=_SETTINGS),
        )
    return conclude(result, config, console)


def _labels(name: str, store: BagStore, start: int, stop: int) -> NDArray[Any]:
    """Return the values of a target; classes by name, because codes differ between stores."""
    import numpy as np

    values = store.targets(start, stop, names=(name,))[:, 0]
    classes = store.meta.class_names.get(name)
    if classes is None or np.isnan(values).any():  # a missing label is refused by the test
        return values
    labels: NDArray[Any] = np.array(classes)[values.astype(int)]
    return labels
