"""``bags test fit``: whether targets of a store, such as residuals, follow a mixture of normals."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import Field

from bagbasis.core import parameters_of
from bagbasis.hypotheses import FIT, MixtureScore, fit_test

from ...configs.sections import parameters_field, with_parameters
from ...terminal import Terminal
from .common import (
    StoreTestConfig,
    conclude,
    named_statistic,
    statistic_of,
)

_SETTINGS = {"bandwidth", "null", "n_draws", "seed"}


_MIXTURE = parameters_of(MixtureScore)


@with_parameters(fit_test, only=_SETTINGS)
class Config(StoreTestConfig):
    """Keys of ``configs/test-fit.yaml``."""

    RENAMED_OF: ClassVar[str] = "bags test fit"

    targets: list[str] = Field(
        examples=[["k"]], min_length=1, description="the targets that are a point together"
    )
    means: list[list[float]] = Field(
        default=[],
        description="means of the components, a number per target each; []: one component at 0",
    )
    covariances: float | list[list[list[float]]] = Field(
        default=_MIXTURE["covariances"].default,
        description="covariances of the components; a number: one variance for all",
    )
    weights: list[float] | None = Field(
        default=_MIXTURE["weights"].default, description="weights of the components; null: equal"
    )
    parameters: dict[str, Any] = parameters_field("statistic", FIT)
    statistic: str = statistic_of(fit_test, FIT)


def run(config: Config, console: Terminal) -> dict[str, Any]:
    """Test; writes the picture, returns the report."""
    import numpy as np

    from bagbasis import BagStore
    from bagbasis.data.labelled.columns import refuse_columns_of_classes

    statistic = named_statistic(FIT, config.statistic, config.parameters)
    means = config.means or [[0.0] * len(config.targets)]
    score = MixtureScore(means, config.covariances, weights=config.weights)
    store = BagStore.open(config.data_url)
    refuse_columns_of_classes(store, config.targets, "targets")
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
