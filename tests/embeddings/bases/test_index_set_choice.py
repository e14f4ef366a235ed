"""The automatic choice of an index set, against the naive leave-one-out loop."""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis import Bags, BagStore, Box, DataError, ProjectionEmbedding
from bagbasis.embeddings.bases.smoothness import (
    MAX_CHOSEN_FUNCTIONS,
    choose_index_set,
)
from tests.oracles.series import index_set_by_loop, least_score


def bumps(seed, width, sizes=(15, 40, 2, 1), n_dims=2):
    """Bags of points around a centre of their own: the narrower, the more functions they need."""
    rng = np.random.default_rng(seed)
    centres = rng.uniform(0.3, 0.7, (len(sizes), n_dims))
    return [
        np.clip(centre + width * rng.standard_normal((size, n_dims)), 0, 1)
        for centre, size in zip(centres, sizes, strict=True)
    ]


def tensor(length, basis, n_dims=2):
    return index_set_by_loop(n_dims, length, None, basis)


@pytest.mark.parametrize("marginals", [1, 2])
def test_marginals(marginals):
    """With marginals the scores of all subsets of coordinates are added."""
    bags = bumps(3, 0.1, n_dims=3)
    spec = ProjectionEmbedding(n_per_dim="auto", marginals=marginals).fit(bags).spec_
    candidates = [tensor(n, "cosine", marginals) for n in range(1, 11)]
    best = least_score(bags, candidates, "cosine", (0,) * 3, (1,) * 3, marginals=marginals)
    assert spec.n_per_dim == best + 1 < 10


@pytest.mark.parametrize("mode", ["clip", "drop"])
def test_points_outside_count_as_they_are_embedded(mode):
    """Dropped points are left out of the score too: clipped ones would heap up on the edges."""
    rng = np.random.default_rng(4)
    bags = [
        np.concatenate([rng.uniform(0, 1, (60, 1)), rng.uniform(2, 9, (60, 1))]) for _ in range(5)
    ]
    embedding = ProjectionEmbedding(n_per_dim="auto", out_of_box=mode, box=[(0, 1)])
    candidates = [tensor(n, "cosine", 1) for n in range(1, 65)]
    best = least_score(bags, candidates, "cosine", (0,), (1,), mode=mode)
    assert embedding.fit(bags).spec_.n_per_dim == best + 1
    assert (best > 20) == (mode == "clip")


def test_store_and_memory_choose_the_same(tmp_path):
    """A store's bags are those in memory; a given max_norm is not searched for."""
    bags = bumps(6, 0.1, sizes=[20] * 300)
    store = BagStore.create(tmp_path / "s.zarr", 2, chunk_points=50, dtype="float64").append(bags)
    for params in ({"n_per_dim": "auto"}, {"max_norm": "auto"}):
        of_store = ProjectionEmbedding(**params).fit(store).spec_
        assert of_store == ProjectionEmbedding(**params).fit(bags).spec_
    assert ProjectionEmbedding(n_per_dim="auto", max_norm=2.0).fit(store).spec_.max_norm == 2.0


def test_candidates_are_limited():
    """In many dimensions the search stays among sets of at most 1,024 functions."""
    bags = [np.full((50, 8), 0.5) + 1e-3 * np.arange(50)[:, None]]
    for params in ({"n_per_dim": "auto"}, {"max_norm": "auto"}):
        assert ProjectionEmbedding(**params).fit(bags).spec_.n_features <= MAX_CHOSEN_FUNCTIONS


def test_bags_of_one_point_say_nothing():
    """Leaving the only point out leaves nothing: such bags alone are an error."""
    with pytest.raises(DataError, match="bags of at least two points"):
        choose_index_set(
            [Bags.from_list([[[0.5]], [[0.1]]])], "tensor", "cosine", np.array([[0]]), Box.unit(1)
        )
