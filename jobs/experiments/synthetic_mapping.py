"""`SyntheticMapping`: a known function of densities, by 2BE and by the Kernel-Kernel estimator.

004, §3.5.1 and Figure 3.17: error and time a query over the number N of training bags, whose
number of points grows as N^(3/5).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

import numpy as np

from bagbasis import BagStore, DoubleBasisRegressor, KernelSmoother, load_model
from bagbasis.datasets import SyntheticMapping as MappedBags
from bagbasis.datasets import generate
from bagbasis.storage.zarr_stores import exists

from ..terminal import Callback
from .experiment import Experiment, Point, Result, Table, digest
from .kernel_density_embedding import KernelDensityEmbedding
from .learners import (
    N_ROUNDS,
    Candidates,
    fit_double_basis,
    fit_kernel_kernel,
    mean_squares,
    smoothed,
    times,
)
from .synthetic_mapping_report import draw_mapping, mapping_tables

EXPONENT = 3 / 5


@dataclass(frozen=True)
class Settings:
    """A scale of the experiment.

    Attributes
    ----------
    n_train : tuple of int
        N.
    points_factor : float
        c of n = c N^(3/5).
    n_test : int
        Bags that the 2BE predicts.
    most_pairs : int
        Of a training and a test bag: KK predicts the first most_pairs / N test bags.
    timed : tuple of int
        Training bags, fewer than any N, of smoothers that are timed alone: where both estimators
        take the same time.
    candidates : Candidates
    n_queries : int
        Bags predicted at once where batches are timed.
    """

    n_train: tuple[int, ...]
    points_factor: float
    n_test: int
    most_pairs: int
    timed: tuple[int, ...]
    candidates: Candidates
    n_queries: int = 256

    def n_points(self, n_train: int) -> int:
        """n, points in each bag."""
        return round(self.points_factor * n_train**EXPONENT)


SETTINGS = {
    "small": Settings(
        n_train=(4_000, 16_000),
        points_factor=0.5,
        n_test=3_000,
        most_pairs=4 * 10**7,
        timed=(10, 100),
        candidates=Candidates(
            n_per_dim=(8, 12),
            multipliers=(0.5, 1.0),
            alphas_a_bag=(-9.0, 0.0),
            bandwidths=(0.04, 0.06),
            n_features=512,
            n_choose=2_000,
        ),
    ),
    "paper": Settings(
        n_train=(10_000, 100_000, 1_000_000),
        points_factor=0.1,
        n_test=100_000,
        most_pairs=5 * 10**9,
        timed=(10, 100, 1_000),
        candidates=Candidates(
            n_per_dim=(8, 12, 18),
            multipliers=(0.5, 1.0, 2.0),
            alphas_a_bag=(-9.0, 0.0),
            bandwidths=(0.025, 0.04, 0.06, 0.09),
            n_features=2048,
            n_choose=10_000,
        ),
    ),
}


class SyntheticMapping(Experiment[Settings]):
    """See the module; points a number N are the data, the 2BE, and KK with the times of both."""

    name = "synthetic-mapping"
    title = "A synthetic mapping of densities"
    source = "004, §3.5.1"
    scales = SETTINGS

    @property
    def size(self) -> str:
        s = self.settings
        bags = ", ".join(f"{n:,} training bags of {s.n_points(n):,} points" for n in s.n_train)
        return (
            f"{bags}; {s.n_test:,} test bags. The paper has 10,000, 100,000 and 1,000,000 bags, "
            "of a number of points ∝ N^(3/5) whose factor it does not say, and 100,000 test bags."
        )

    def points(self) -> list[Point]:
        s, found = self.settings, []
        learners = {"candidates": s.candidates.params, "most_pairs": s.most_pairs}
        for n in s.n_train:
            data = {"n_train": n, "n_points": s.n_points(n), "n_test": s.n_test}
            queries = {**learners, "n_queries": s.n_queries, "n_rounds": N_ROUNDS}
            found += [
                Point(f"data, N {n}", {"measure": "data", **data}),
                Point(f"2BE, N {n}", {"measure": "2be", **data, **learners}),
                Point(f"KK and times, N {n}", {"measure": "kk", **data, **queries}),
            ]
        first: dict[str, Any] = {**found[2].params, "measure": "time"}
        timed = [Point(f"times, {n} bags", {**first, "n_timed": n}) for n in s.timed]
        return [*found, *timed]

    def measure(self, point: Point, progress: Callback) -> dict[str, Any]:
        n, kind = point.params["n_train"], point.params["measure"]
        if kind == "data":
            stores = self._store(n, "train", progress), self._store(n, "test", progress)
            return {name: store.n_bags for name, store in zip(("n_train", "n_test"), stores,
                    strict=True)}  # fmt: skip
        if kind == "2be":
            return self._double_basis(n)
        if kind == "kk":
            return self._kernel_kernel(n)
        return self._times_of_few(n, point.params["n_timed"])

    def tables(self, results: Sequence[Result]) -> list[Table]:
        return mapping_tables(results)

    def draw(self, results: Sequence[Result]) -> list[Path]:
        return [draw_mapping(self.out_dir / "mapping.png", results)]

    # ------------------------------------------------------------------ data and models

    def _store(self, n_train: int, split: str, progress: Callback | None = None) -> BagStore:
        """Bags of a split, generated where they are not there."""
        train = split == "train"
        bags = MappedBags(
            n_points=self.settings.n_points(n_train),
            seed=2 * self.seed + (not train),
            mapping_seed=self.seed,
        )
        n_bags = n_train if train else self.settings.n_test
        name = f"{split}-{digest({**bags.params, 'n_bags': n_bags})}.zarr"
        return generate(bags, self.out_dir / "data" / name, n_bags, progress=progress)

    def _few(self, store: BagStore) -> tuple[Any, Any]:
        n = min(self.settings.candidates.n_choose, store.n_bags)
        return store.read(0, n), store.targets(0, n)[:, 0]

    def _model_url(self, n_train: int) -> str:
        s = self.settings
        params: dict[str, Any] = {"n_train": n_train, "n_points": s.n_points(n_train)}
        params["seed"], params["candidates"] = self.seed, s.candidates.params
        return str(self.out_dir / "models" / f"{digest(params)}.zarr")

    def _model(self, n_train: int) -> DoubleBasisRegressor:
        """The 2BE, which the point before left, or made again."""
        url = self._model_url(n_train)
        if not exists(url):
            self._double_basis(n_train)
        return cast(DoubleBasisRegressor, load_model(url))

    # ------------------------------------------------------------------ points

    def _n_smoothed(self, n_train: int) -> int:
        return min(self.settings.n_test, self.settings.most_pairs // n_train)

    def _double_basis(self, n_train: int) -> dict[str, Any]:
        train, test = self._store(n_train, "train"), self._store(n_train, "test")
        fitted = fit_double_basis((train, None), self._few(train), self.settings.candidates,
                                  self.seed)  # fmt: skip
        fitted.model.save(self._model_url(n_train), overwrite=True)
        bags, y = test_bags(test.url, test.n_bags)
        predicted, first = fitted.model.predict(bags), slice(None, self._n_smoothed(n_train))
        return {
            **mean_squares(predicted, y),
            "first": mean_squares(predicted[first], y[first]),
            "variance": float(y.var()),
            "choice": fitted.choice,
        }

    def _kernel_kernel(self, n_train: int) -> dict[str, Any]:
        train, test = self._store(n_train, "train"), self._store(n_train, "test")
        fitted = fit_kernel_kernel((train, None), self._few(train), self.settings.candidates)
        n = self._n_smoothed(n_train)
        bags, y = test_bags(test.url, test.n_bags)
        return {
            **mean_squares(smoothed(fitted.model, bags[:n]), y[:n]),
            "n": n,
            "choice": fitted.choice,
            "seconds": times(self._model(n_train), fitted.model, bags, self.settings.n_queries),
        }

    def _times_of_few(self, n_train: int, n_timed: int) -> dict[str, Any]:
        """What a smoother takes does not depend on its bandwidth."""
        train, test = self._store(n_train, "train"), self._store(n_train, "test")
        embedding = KernelDensityEmbedding(self.settings.candidates.bandwidths[-1])
        few = train.read(0, n_timed), train.targets(0, n_timed)[:, 0]
        smoother = KernelSmoother(embedding, bandwidth=1.0).fit(*few)
        bags, _ = test_bags(test.url, test.n_bags)
        return {"seconds": times(self._model(n_train), smoother, bags, self.settings.n_queries)}


@lru_cache(maxsize=1)
def test_bags(url: str, n_bags: int) -> tuple[Any, Any]:
    """All bags of a store and its one target."""
    store = BagStore.open(url)
    return store.read(0, n_bags), store.targets(0, n_bags)[:, 0].astype(np.float64)
