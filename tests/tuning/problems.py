"""Small problems to tune on, and every candidate's error by brute force."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import Ridge

from pipeline import DoubleBasisRegressor, ProjectionEmbedding, RandomFourierFeatures
from pipeline.bags import Bags
from pipeline.regression import FeatureMap
from pipeline.regression.double_basis import HOLDOUT_SEED, VALIDATION_SEED
from pipeline.regression.split import Split
from pipeline.tuning import Search
from tests.oracles.labelled import labelled_bags

N = 480
SHARE = 0.25
BAGS, Y = labelled_bags(N, seed=3)
SEARCH = Search(
    [ProjectionEmbedding(n_per_dim=n) for n in (1, 3, 8)], (0.02, 1.0, 50.0), first_bags=96
)


def estimator(kind: Any = DoubleBasisRegressor, **params: Any) -> Any:
    """64 features in double precision; a quarter of the bags compares candidates."""
    defaults = {"alpha": "validation", "validation_fraction": SHARE, "precision": "float64"}
    return kind(random_features=RandomFourierFeatures(64), **{**defaults, **params})


def errors_by_loop(
    features: FeatureMap,
    bags: Any,
    targets: NDArray[np.float64],
    alphas: Any,
    holdout: float = 0.0,
) -> list[float]:
    """Held-out squared error over the variance for each penalty, with scikit-learn's ridge."""
    z = np.concatenate([block.copy() for _, block, _ in features.blocks(bags, np.float64)])
    y = targets.reshape(len(z), -1)
    used = ~np.isnan(y).any(axis=1)
    if holdout:
        used &= ~Split(holdout, HOLDOUT_SEED).members(0, len(z))
    apart = Split(SHARE, VALIDATION_SEED).members(0, len(z))
    train, held = used & ~apart, used & apart
    errors = []
    for alpha in alphas:
        fitted = Ridge(alpha=alpha).fit(z[train], y[train]).predict(z[held])
        squares = ((fitted.reshape(-1, y.shape[1]) - y[held]) ** 2).mean(axis=0)
        errors.append(float(np.mean(squares / y[held].var(axis=0))))
    return errors


def errors_of(tuning: Any) -> list[dict[int, tuple[float, ...]]]:
    """The whole paths of every rung."""
    return [{c: score.errors for c, score in scores.items()} for scores in tuning.scores]


class Embedded:
    """Counts, while tuning embeds, how often each embedding has seen each bag."""

    def __init__(self, monkeypatch: Any) -> None:
        self.counts: Counter[tuple[Any, bytes]] = Counter()
        embed = FeatureMap.embed

        def counted(features: FeatureMap, bags: Bags, dtype: Any) -> Any:
            if dtype is np.float32:  # the last fit and the median distance have other ones
                self.counts.update((features.embedding, bag.tobytes()) for bag in bags)
            return embed(features, bags, dtype)

        monkeypatch.setattr(FeatureMap, "embed", counted)

    def of(self, spec: Any) -> int:
        """Bags that one embedding has seen."""
        return sum(count for (found, _), count in self.counts.items() if found == spec)

    @property
    def most(self) -> int:
        """How often the bag seen most often by an embedding was seen."""
        return max(self.counts.values(), default=0)
