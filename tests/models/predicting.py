"""Small models of each kind, and the bags they predict."""

from __future__ import annotations

from functools import cache

import numpy as np

from bagbasis import (
    DoubleBasisClassifier,
    DoubleBasisRegressor,
    ProjectionEmbedding,
    RandomFourierFeatures,
    as_bags,
)
from bagbasis.data.storage.zarr_stores import read_group
from tests.oracles.labelled import labelled_bags

N = 70
BAGS, Y = labelled_bags(N, most=30)
CODES = np.digitize(Y, [-0.3, 0.4])
NAMES = np.array(["low", "middle", "üpper"])
IDS = {"int": np.arange(N)[::-1] * 7 - 20, "str": [f"bäg {i}" for i in range(N)]}


def bases():
    return ProjectionEmbedding(n_per_dim=4), RandomFourierFeatures(n_features=32, seed=3)


def regressor(**params):
    return DoubleBasisRegressor(*bases(), **{"alpha": 0.1, "precision": "float64", **params})


def classifier(**params):
    return DoubleBasisClassifier(*bases(), **{"alpha": 0.1, "precision": "float64", **params})


FITS = {
    "one target": lambda: regressor().fit(BAGS, Y),
    "two targets": lambda: regressor().fit(BAGS, np.stack([Y, Y**2], axis=1)),
    "classes": lambda: classifier().fit(BAGS, CODES),
    "class names": lambda: classifier().fit(BAGS, NAMES[CODES]),
}


@cache
def fitted(name):
    return FITS[name]()


def features_of(model, bags):
    """The rows of features in double, of bags in memory."""
    blocks = model.features_.blocks(as_bags(bags), "float64")
    return np.concatenate([block.copy() for _, block, _ in blocks])


def ids_of(store):
    return store.ids().tolist()


def read_zarr(url):
    group = read_group(str(url))
    return {name: array[:] for name, array in group.arrays()}, dict(group.attrs)
