"""The sizes and embeddings of `gmm-components` at both scales."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bagbasis import HDDEmbedding, HistogramEmbedding, MeanMapEmbedding, ProjectionEmbedding

BOX = [(-10, 10)] * 2


@dataclass(frozen=True)
class Settings:
    """A scale of the experiment.

    Attributes
    ----------
    n_points : tuple of int
        A bag.
    n_train : tuple of int
        Training bags, ascending; the smaller sets are the beginnings of the largest.
    n_test : int
    n_features : int
        D.
    n_choose, choose_features : int
        Training bags and D with which embedding and σ are chosen.
    multipliers : tuple of float
        σ over the median distance, to choose from.
    methods : mapping from name to embeddings to choose from
    kl : mapping from n_points to the training and test bags of the full kernel matrix
    n_em : mapping from n_points to the test bags of AIC and BIC
    """

    n_points: tuple[int, ...]
    n_train: tuple[int, ...]
    n_test: int
    n_features: int
    n_choose: int
    choose_features: int
    multipliers: tuple[float, ...]
    kl: Mapping[int, tuple[int, int]]
    n_em: Mapping[int, int]
    methods: Mapping[str, Sequence[Any]] = field(default_factory=dict)


def embeddings(bandwidths: Sequence[Any], n: Sequence[int], mean_map: Sequence[Any]) -> Any:
    """Candidates of each method: density bandwidths of HDDs, functions or bins a dimension of
    projection and histogram, point kernels of the mean map."""
    return {
        "JS": [HDDEmbedding("js", bandwidth=h, box=BOX) for h in bandwidths],
        "Hellinger": [HDDEmbedding("hellinger", bandwidth=h, box=BOX) for h in bandwidths],
        "TV": [HDDEmbedding("tv", n_per_dim=10, grid=40, bandwidth=h, box=BOX) for h in bandwidths],
        "L2": [ProjectionEmbedding(n_per_dim=k, box=BOX) for k in n],
        "MMD": [MeanMapEmbedding(n_features=512, bandwidth=h, box=BOX) for h in mean_map],
        "Hist JS": [HistogramEmbedding("js", n_bins=k, box=BOX) for k in n],
    }


SETTINGS = {
    "small": Settings(
        n_points=(200,),
        n_train=(1000, 3000),
        n_test=1500,
        n_features=1000,
        n_choose=1000,
        choose_features=500,
        multipliers=(1.0, 2.0),
        kl={200: (150, 150)},
        n_em={200: 25},
        methods=embeddings((0.03,), (10,), (0.1,)),
    ),
    "paper": Settings(
        n_points=(200, 800),
        n_train=(4000, 8000, 16_000),
        n_test=2000,
        n_features=5000,
        n_choose=4000,
        choose_features=1000,
        multipliers=(0.5, 1.0, 2.0, 4.0),
        kl={200: (600, 300), 800: (250, 150)},
        n_em={200: 200, 800: 80},
        methods=embeddings((0.02, 0.03, 0.05), (8, 10, 14), (0.05, 0.1, 0.2)),
    ),
}
