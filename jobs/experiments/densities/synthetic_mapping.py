"""`SyntheticMappings`: a known function of densities, by 2BE and by the Kernel-Kernel estimator.

004, §3.5.1 and Figure 3.17: error and time per query over N training bags of ∝ N^(3/5) points.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, cast

import numpy as np

from bagbasis import BagStore, DoubleBasisRegressor, KernelSmoother, load_model
from bagbasis.core.arrays import Floats
from bagbasis.data.storage.zarr_stores import exists
from bagbasis.datasets import SyntheticMapping as MappedBags, generate

from ..kit import Callback, Curves, Experiment, Measure, Params, kernel_kernel as kk, short_name
from ..kit.learning import Training, mean_squares

EXPONENT = 3 / 5  # of N in the number of points


class SyntheticMappings(Experiment):
    name = "synthetic-mapping"
    title = "A synthetic mapping of densities"
    source = "004, §3.5.1"
    pictures = (
        Curves("mapping.png", "seconds.*_single", measure="kk", x="n_train", log="xy",
               label="seconds"),
    )  # fmt: skip

    def measures(self) -> list[Measure]:
        s = self.settings
        sizes = {"n_train n_points": [(n, self._n_points(n)) for n in s.n_train]}
        first = dict(zip(("n_train", "n_points"), sizes["n_train n_points"][0], strict=True))
        data = {"n_test": s.n_test}
        learners = {**data, "candidates": s.candidates, "most_pairs": s.most_pairs}
        queries = {**learners, "n_queries": kk.N_QUERIES, "n_rounds": kk.N_ROUNDS}
        return [
            Measure("data", self._data, "data, N {n_train}", sizes, data),
            Measure("2be", self._double_basis, "2BE, N {n_train}", sizes, learners),
            Measure("kk", self._kernel_kernel, "KK and times, N {n_train}", sizes, queries),
            Measure("time", self._times_of_few, "times, {n_timed} bags", {"n_timed": s.timed},
                    {**queries, **first}),
        ]  # fmt: skip

    def _n_points(self, n_train: int) -> int:
        factor: float = self.settings.points_factor
        return round(factor * n_train**EXPONENT)

    def _store(self, n_train: int, split: str, progress: Callback | None = None) -> BagStore:
        train = split == "train"
        seeds = {"seed": 2 * self.seed + (not train), "mapping_seed": self.seed}
        bags = MappedBags(n_points=self._n_points(n_train), **seeds)
        n_bags = n_train if train else self.settings.n_test
        name = f"{split}-{short_name({**bags.params, 'n_bags': n_bags})}.zarr"
        return generate(bags, self.out_dir / "data" / name, n_bags=n_bags, progress=progress)

    def _training(self, n_train: int) -> tuple[Training, Training]:
        """All training bags, stored, and the first ones, which choose the bases, in memory."""
        store = self._store(n_train, "train")
        n = min(self.settings.candidates["n_choose"], store.n_bags)
        return (store, None), (store.read(0, n), store.targets(0, n)[:, 0])

    def _model_url(self, n_train: int) -> str:
        params = {"n_train": n_train, "n_points": self._n_points(n_train), "seed": self.seed}
        name = short_name({**params, "candidates": self.settings.candidates})
        return str(self.out_dir / "models" / f"{name}.zarr")

    def _model(self, n_train: int) -> DoubleBasisRegressor:
        """Return the 2BE, which the point before left, or made again."""
        url = self._model_url(n_train)
        if not exists(url):
            self._fit(n_train)
        return cast(DoubleBasisRegressor, load_model(url))

    def _fit(self, n_train: int) -> tuple[DoubleBasisRegressor, dict[str, Any]]:
        model, choice = kk.fit_double_basis(
            *self._training(n_train), self.settings.candidates, self.seed
        )
        model.save(self._model_url(n_train), overwrite=True)
        return model, choice

    def _test(self, n_train: int) -> tuple[Any, Floats]:
        return test_bags(self._store(n_train, "test").url, self.settings.n_test)

    def _n_smoothed(self, n_train: int) -> int:
        s = self.settings
        return int(min(s.n_test, s.most_pairs // n_train))

    def _data(self, p: Params, progress: Callback) -> dict[str, Any]:
        splits = ("train", "test")
        return {f"n_{s}": self._store(p["n_train"], s, progress).n_bags for s in splits}

    def _double_basis(self, p: Params, progress: Callback) -> dict[str, Any]:
        model, choice = self._fit(p["n_train"])
        bags, y = self._test(p["n_train"])
        predicted, first = model.predict(bags), slice(None, self._n_smoothed(p["n_train"]))
        return {
            **mean_squares(predicted, y),
            "first": mean_squares(predicted[first], y[first]),
            "variance": float(y.var()),
            "choice": choice,
        }

    def _kernel_kernel(self, p: Params, progress: Callback) -> dict[str, Any]:
        s, training = self.settings, self._training(p["n_train"])
        smoother, choice = kk.fit_kernel_kernel(*training, s.candidates)
        n, model = self._n_smoothed(p["n_train"]), self._model(p["n_train"])
        bags, y = self._test(p["n_train"])
        return {
            **mean_squares(kk.smooth(smoother, bags[:n]), y[:n]),
            "n": n,
            "choice": choice,
            "seconds": kk.measure_times(model, smoother, training[0], bags),
        }

    def _times_of_few(self, p: Params, progress: Callback) -> dict[str, Any]:
        train, n, s = self._store(p["n_train"], "train"), p["n_timed"], self.settings
        few = train.read(0, n), train.targets(0, n)[:, 0]
        embedding = kk.KernelDensityEmbedding(s.candidates["bandwidths"][-1])
        smoother = KernelSmoother(embedding, bandwidth=1.0).fit(*few)
        bags, _ = self._test(p["n_train"])
        model = self._model(p["n_train"])
        return {"seconds": kk.measure_times(model, smoother, few, bags)}


@lru_cache(maxsize=1)
def test_bags(url: str, n_bags: int) -> tuple[Any, Floats]:
    store = BagStore.open(url)
    return store.read(0, n_bags), store.targets(0, n_bags)[:, 0].astype(np.float64)
