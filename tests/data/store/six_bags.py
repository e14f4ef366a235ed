"""Stores of six bags, with responses, over several objects: to be refused input and damaged."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from bagbasis import Bags, BagStore
from bagbasis.data.store.checksums import checksum_of_values
from bagbasis.data.store.schema import STORE_CHECKSUM, STORE_KEY
from tests.copied import copied
from tests.oracles.ragged import StoreModel, random_bags

SIZES = (5, 30, 1, 40, 16, 8)  # 100 points: an object is 32 rows, a chunk 2
RESPONSES = (40, 0, 1, 0, 0, 9)  # 50 points
GOOD = [[1.0, 0.0], [2.0, 1.0]]  # targets of `two_bags`


def six_bags():
    """Return what the stores hold."""
    rng = np.random.default_rng(0)
    bags = random_bags(rng, SIZES, 2, np.float32)
    responses = [rng.random((m, 3), np.float32) if m else None for m in RESPONSES]
    return StoreModel(bags, [[float(i), np.nan] for i in range(6)], list(range(10, 16)), responses)


@copied
def make(url, ids=None):
    """Make a store of what the model holds, or with ids that are letters."""
    model = six_bags()
    store = BagStore.create(
        url,
        2,
        target_names=["y", "c"],
        response_dims=3,
        chunk_points=2,
        class_names={"c": ["red", "blue"]},
    )
    store.append(model.bags, model.targets, ids=[*(ids or model.ids)], responses=model.responses)


def two_bags(*, point=(0, 0, 0.0), n_dims=2):
    """Make bags to append, of which one coordinate may be wrong."""
    arrays = [np.zeros((1, n_dims)), np.zeros((3, n_dims))]
    bag, row, value = point
    arrays[bag][row, 0] = value
    return Bags.trusted(np.concatenate(arrays), np.array([0, 1, 4]))


def edit_attributes(store, change, checksum=True):
    """Change the committed attributes behind the store's back, and their checksum unless False."""
    path = Path(store.url) / "zarr.json"
    document = json.loads(path.read_text())
    own = document["attributes"][STORE_KEY]
    change(own)
    if checksum and own.pop(STORE_CHECKSUM, None):
        own[STORE_CHECKSUM] = checksum_of_values(own)
    path.write_text(json.dumps(document))


def contents(store):
    """Every file of a store, by its name: what is equal is read as it was."""
    url = Path(store.url)
    return {str(p.relative_to(url)): p.read_bytes() for p in url.rglob("*") if p.is_file()}
