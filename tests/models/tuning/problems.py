"""Small problems to tune on, and every candidate's error by brute force."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray
from sklearn.linear_model import Ridge

from bagbasis import (
    Bags,
    BagStore,
    DoubleBasisRegressor,
    ProjectionEmbedding,
    RandomFourierFeatures,
    TripleBasisRegressor,
)
from bagbasis.models import Search
from tests.models.splits import held_out, validating
from tests.oracles import fourier, ridge, series
from tests.oracles.labelled import labelled_bags
from tests.oracles.planned import FeatureMap

N = 480
SHARE = 0.25
BAGS, Y = labelled_bags(N, seed=3)
RESPONSES = [None if i % 7 == 6 else 1 - bag[:, :1] ** 2 for i, bag in enumerate(BAGS)]
ANSWERED = np.array([response is not None for response in RESPONSES])
N_THIRD = 5
SEARCH = Search(
    [ProjectionEmbedding(n_per_dim=n) for n in (1, 3, 8)],
    scale_multipliers=(0.02, 1.0, 50.0),
    first_bags=96,
)


def estimator(kind: Any = DoubleBasisRegressor, **params: Any) -> Any:
    """64 features in double precision; a quarter of the bags compares candidates."""
    defaults = {"alpha": "validation", "validation_fraction": SHARE, "precision": "float64"}
    return kind(**{"random_features": RandomFourierFeatures(n_features=64), **defaults, **params})


def density_estimator(**params: Any) -> Any:
    """The same for densities, with five coefficients of a response."""
    defaults = {"response_embedding": ProjectionEmbedding(n_per_dim=N_THIRD)}
    return estimator(TripleBasisRegressor, **{**defaults, **params})


def stored_pairs(url: Any, **options: Any) -> BagStore:
    """A store of the bags with their responses."""
    store = BagStore.create(url, 2, response_dims=1, **{"dtype": np.float64, **options})
    return store.append(BAGS, responses=RESPONSES)


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
        used &= ~held_out(holdout, len(z))
    apart = validating(SHARE, len(z))
    train, held = used & ~apart, used & apart
    errors = []
    for alpha in alphas:
        fitted = Ridge(alpha=alpha).fit(z[train], y[train]).predict(z[held])
        squares = ((fitted.reshape(-1, y.shape[1]) - y[held]) ** 2).mean(axis=0)
        errors.append(float(np.mean(squares / y[held].var(axis=0))))
    return errors


def density_errors_by_solve(
    features: FeatureMap, bags: Any, alphas: Any, holdout: float = 0.0
) -> list[float]:
    """Held-out squared L2 error of the response densities over their variance, each penalty's
    normal equations solved by themselves, from coefficients in the precision of the cache."""
    first, _ = features.embed(bags, np.float32)
    assert features.second is not None
    z, y = fourier.features(first, features.second.frequencies()), coefficients_by_loop()
    used = ANSWERED & ~held_out(holdout, len(z))
    apart = validating(SHARE, len(z))
    train, held = used & ~apart, used & apart
    variance = y[held].var(axis=0).sum()
    errors = []
    for alpha in alphas:
        predicted = ridge.predict(z[held], ridge.ridge(z[train], y[train], alpha))
        errors.append(float(((predicted - y[held]) ** 2).sum(axis=1).mean() / variance))
    return errors


@lru_cache
def coefficients_by_loop() -> NDArray[np.float64]:
    """Coefficients of the responses, shape (N, N_THIRD); NaN where there is none."""
    indices = series.index_set_by_loop(1, N_THIRD, None, "cosine")
    answers = [response for response in RESPONSES if response is not None]
    y = np.full((N, N_THIRD), np.nan)
    y[ANSWERED] = series.project_by_loop(answers, indices, "cosine", (0,), (1,), marginals=1)[0]
    return y


def kept_blocks(folder: Any, dtype: str = "float32") -> list[Path]:
    """Blocks in caches of coefficients, or with "float64" of targets."""
    caches = [
        path
        for path in Path(folder).iterdir()
        if path.is_dir() and zarr.open_array(path / "rows").dtype == dtype
    ]
    return sorted(block for cache in caches for block in cache.glob("rows/c/*/0"))


def errors_of(tuning: Any) -> list[dict[int, tuple[float, ...]]]:
    """The whole paths of every rung."""
    return [{c: score.errors for c, score in scores.items()} for scores in tuning.scores]


class Embedded:
    """Counts, while tuning embeds, how often each embedding has seen each bag."""

    def __init__(self, monkeypatch: Any) -> None:
        self.counts: Counter[tuple[Any, bytes]] = Counter()
        embed = FeatureMap.embed

        def counted(features: FeatureMap, bags: Bags, dtype: Any, outside: Any = None) -> Any:
            if dtype is np.float32:  # the last fit and the median distance have other ones
                self.counts.update((features.embedding, bag.tobytes()) for bag in bags)
            return embed(features, bags, dtype, outside)

        monkeypatch.setattr(FeatureMap, "embed", counted)

    def of(self, spec: Any) -> int:
        """Bags that one embedding has seen."""
        return sum(count for (actual, _), count in self.counts.items() if actual == spec)

    @property
    def most(self) -> int:
        """How often the bag seen most often by an embedding was seen."""
        return max(self.counts.values(), default=0)
