"""Small valid data that every example call is made of."""

from __future__ import annotations

from functools import cached_property
from itertools import count
from pathlib import Path

import h5py
import numpy as np
from flowio import create_fcs

from bagbasis import (
    Bags,
    BagStore,
    DoubleBasisClassifier,
    DoubleBasisRegressor,
    KernelSmoother,
    ProjectionEmbedding,
    RandomFourierFeatures,
    Responses,
    TripleBasisRegressor,
    evaluate,
)
from bagbasis.densities import Densities
from bagbasis.embeddings import index_set
from bagbasis.models import Errors, write_predictions
from bagbasis.operations import Registry

N = 12


class World:
    """Bags, labels, a store, models and a registry in a folder."""

    def __init__(self, folder: Path) -> None:
        rng = np.random.default_rng(0)
        self._numbers = count()
        self.folder = folder
        self.arrays = [rng.random((6 + i % 3, 2)) for i in range(N)]
        self.bags = Bags.from_list(self.arrays)
        self.y = np.array([array.mean() for array in self.arrays])
        self.classes = ["a", "b"] * (N // 2)
        self.answers = [rng.random((5, 1)) for _ in range(N)]
        self.features = rng.random((N, 3))
        self.distances = np.abs(self.y[:, None] - self.y)
        self.embedding = ProjectionEmbedding(n_per_dim=3)
        self.second = RandomFourierFeatures(n_features=16)

    def new(self, ending: str = ".zarr") -> Path:
        """A path at which nothing is."""
        return self.folder / f"new{next(self._numbers)}{ending}"

    @cached_property
    def url(self) -> str:
        """Arguments for a store with two targets and responses."""
        return self.make_store().url

    @property
    def store(self) -> BagStore:
        return BagStore.open(self.url)

    def make_store(self) -> BagStore:
        """A new store of all bags."""
        store = BagStore.create(
            self.new(), 2, target_names=["y", "c"], class_names={"c": ["a", "b"]}, response_dims=1
        )
        return store.append(self.arrays, {"y": self.y, "c": self.classes}, responses=self.answers)

    @cached_property
    def growing(self) -> BagStore:
        """A store to append to."""
        return self.make_store()

    @cached_property
    def larger(self) -> BagStore:
        """A store of as many bags as tuning needs."""
        store = BagStore.create(self.new(), 2, target_names=["y"])
        return store.append(self.arrays * 5, np.tile(self.y, 5))

    def new_ids(self) -> np.ndarray:
        """Ids that no bag has."""
        return np.arange(N) + N * (next(self._numbers) + 2)

    @cached_property
    def regressor(self) -> DoubleBasisRegressor:
        return self.unfitted().fit(self.store, target="y")

    def unfitted(self) -> DoubleBasisRegressor:
        return DoubleBasisRegressor(self.embedding, self.second, alpha=1e-3)

    @cached_property
    def errors(self) -> Errors:
        return evaluate(self.regressor, self.store)

    @cached_property
    def classifier(self) -> DoubleBasisClassifier:
        return DoubleBasisClassifier(self.embedding, self.second).fit(self.store, target="c")

    @cached_property
    def triple(self) -> TripleBasisRegressor:
        model = TripleBasisRegressor(
            self.embedding, self.second, response_embedding=ProjectionEmbedding(n_per_dim=3)
        )
        return model.fit(self.store)

    @cached_property
    def smoother(self) -> KernelSmoother:
        third = ProjectionEmbedding(n_per_dim=3)
        return KernelSmoother(self.embedding, response_embedding=third).fit(self.store)

    @cached_property
    def model_url(self) -> str:
        url = str(self.new())
        self.regressor.save(url)
        return url

    @cached_property
    def predictions_url(self) -> str:
        url = str(self.new())
        write_predictions(self.regressor, self.store, url)
        return url

    @cached_property
    def registry(self) -> Registry:
        registry = Registry(self.new(""))
        registry.promote(registry.register(self.regressor))
        return registry

    @cached_property
    def densities(self) -> Densities:
        return Densities(
            np.add(np.eye(3, 4), [1, 0, 0, 0]), index_set(2, 2), basis="cosine", box=None
        )

    @cached_property
    def responses(self) -> Responses:
        return Responses(np.concatenate(self.answers), np.arange(N + 1) * 5)

    @cached_property
    def table(self) -> str:
        """A long table of the bags."""
        path = self.new(".csv")
        rows = ["bag,u,v,y"] + [
            f"{i},{u},{v},{self.y[i]}" for i, bag in enumerate(self.arrays) for u, v in bag
        ]
        path.write_text("\n".join(rows))
        return str(path)

    @cached_property
    def series(self) -> list[np.ndarray]:
        """Time series of two channels."""
        return [array.T for array in self.arrays]

    @cached_property
    def catalogue_of_slides(self) -> str:
        path = self.new(".h5")
        with h5py.File(path, "w") as file:
            file["features"] = self.arrays[0]
        return str(path)

    @cached_property
    def fcs(self) -> str:
        path = self.new(".fcs")
        with path.open("wb") as file:
            create_fcs(file, self.arrays[0].ravel().tolist(), ["CD3", "CD4"])
        return str(path)

    @cached_property
    def catalogue(self) -> str:
        path = self.new(".h5")
        with h5py.File(path, "w") as file:
            file["bag"], file["u"] = [0, 0, 1], [0.0, 1.0, 2.0]
        return str(path)

    @cached_property
    def npz(self) -> str:
        path = self.new(".npz")
        np.savez(path, points=self.bags.points, offsets=self.bags.offsets, targets=self.y)
        return str(path)
