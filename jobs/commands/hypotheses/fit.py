"""``bags test fit``: whether targets of a store, such as residuals, follow a mixture of normals."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import Field

from bagbasis.hypotheses import FIT, MixtureScore, fit_test

from ...configs.sections import with_parameters
from ...terminal import Terminal
from .common import RANGE_HELP, TestConfig, conclude, named_statistic

_SETTINGS = {"bandwidth", "null", "n_draws", "seed"}


@with_parameters(fit_test, only=_SETTINGS)
class Config(TestConfig):
    """Keys of ``configs/test-fit.yaml``."""

    RENAMED_OF: ClassVar[str] = "bags test fit"

    data_url: str = Field(examples=["example-output/bags.zarr"], description="the store")
    bags: list[int] | None = Field(default=None, min_length=2, max_length=2, description=RANGE_HELP)
    targets: list[str] = Field(
        examples=[["k"]], min_length=1, description="the targets that are a point together"
    )
    means: list[list[float]] = Field(
        default=[],
        description="means of the components, a number per target each; []: one component at 0",
    )
    covariances: float | list[list[list[float]]] = Field(
        default=1.0, description="covariances of the components; a number: one variance for all"
    )
    weights: list[float] | None = Field(
        default=None, description="weights of the components; null: equal"
    )
    statistic: str = Field(default="ksd_ranks", description="ksd_ranks, ksd, ksd_agg or fssd")
    groups: str | None = Field(
        default=None, description="a target whose value says which bags are one unit"
    )


def run(config: Config, console: Terminal) -> dict[str, Any]:
    """Test; writes the picture, returns the report."""
    import numpy as np

    from bagbasis import BagStore

    statistic = named_statistic(FIT, config.statistic, config.parameters)
    means = config.means or [[0.0] * len(config.targets)]
    score = MixtureScore(means, config.covariances, weights=config.weights)
    store = BagStore.open(config.data_url)
    start, stop = config.bags or (0, store.n_bags)
    points = store.targets(start, stop, names=config.targets)
    labelled = ~np.isnan(points).any(axis=1)
    groups = config.groups and store.targets(start, stop, names=(config.groups,))[labelled, 0]
    result = fit_test(
        points[labelled],
        score,
        statistic=statistic,
        groups=groups,
        **config.model_dump(include=_SETTINGS),
    )
    return conclude(result, config, console)
