"""``bags test independence``: whether the bags of a store depend on one of its targets."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from bagbasis.hypotheses import INDEPENDENCE, independence_test

from ...cluster import running_on
from ...configs.config import ClusterConfig
from ...configs.sections import parameters_field, with_parameters
from ...terminal import Terminal
from .common import (
    StoreTestConfig,
    conclude,
    named_statistic,
    statistic_of,
)

_SETTINGS = {"kernel", "null", "n_permutations", "seed", "standardize"}
_OF_PAIRS = [name for name, statistic in INDEPENDENCE.items() if statistic.n_variables == 2]


@with_parameters(independence_test, only=_SETTINGS)
class Config(StoreTestConfig, ClusterConfig):
    """Keys of ``configs/test-independence.yaml``."""

    target: str = Field(
        examples=["k"], description="a target of the store: number, class, time or residual"
    )
    parameters: dict[str, Any] = parameters_field("statistic", INDEPENDENCE)
    statistic: str = statistic_of(independence_test, _OF_PAIRS)
    within: str | None = Field(
        default=None, description="a target: the test is of dependence given its value"
    )


def run(config: Config, console: Terminal) -> dict[str, Any]:
    """Test; writes the picture, returns the report."""
    from bagbasis import BagStore

    statistic = named_statistic(INDEPENDENCE, config.statistic, config.parameters)
    store = BagStore.open(config.data_url)
    start, stop = config.bags or (0, store.n_bags)
    groups, within = (
        name and store.targets(start, stop, names=(name,))[:, 0]
        for name in (config.groups, config.within)
    )
    with running_on(config.cluster, store.url):
        result = independence_test(
            (store, start, stop),
            config.target,
            statistic=statistic,
            groups=groups,
            within=within,
            **config.model_dump(include=_SETTINGS),
        )
    return conclude(result, config, console)
