"""The sizes and embeddings of `images` at both scales."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bagbasis import HDDEmbedding, HistogramEmbedding, MeanMapEmbedding, ProjectionEmbedding

CIFAR_FOLDER = "cifar-10-batches-bin"


@dataclass(frozen=True)
class Task:
    """One kind of images.

    Attributes
    ----------
    name : str
    images : {"digits", "cifar10"}
    n_train : tuple of int
        Training images, ascending; the smaller sets are the beginnings of the largest.
    n_splits : int
        Random splits; those of CIFAR-10 differ in the order of the training images.
    n_features : int
        D.
    n_choose, choose_features : int
        Training images and D with which embedding and σ are chosen.
    multipliers : tuple of float
        σ over the median distance, to choose from.
    methods : mapping from name to embeddings to choose from
    kl_splits : int
        Splits on which the full kernel matrix is tried, with the fewest training images.
    """

    name: str
    images: str
    n_train: tuple[int, ...]
    n_splits: int
    n_features: int
    n_choose: int
    choose_features: int
    multipliers: tuple[float, ...]
    methods: Mapping[str, Sequence[Any]]
    kl_splits: int


def embeddings(
    n_per_dim: int,
    bandwidths: Sequence[float],
    n: Sequence[int],
    mean_map: Sequence[float],
    n_bins: Sequence[int],
) -> dict[str, Sequence[Any]]:
    """Candidates of each method, over density bandwidths, functions a dimension of the projection,
    point kernels and bins."""
    return {
        "JS": [HDDEmbedding("js", bandwidth=h, n_per_dim=n_per_dim) for h in bandwidths],
        "Hellinger": [
            HDDEmbedding("hellinger", bandwidth=h, n_per_dim=n_per_dim) for h in bandwidths
        ],
        "TV": [HDDEmbedding("tv", bandwidth=h, n_per_dim=n_per_dim) for h in bandwidths],
        "L2": [ProjectionEmbedding(n_per_dim=k) for k in n],
        "MMD": [MeanMapEmbedding(n_features=1024, bandwidth=h) for h in mean_map],
        "Hist JS": [HistogramEmbedding("js", n_bins=k) for k in n_bins],
    }


SETTINGS = {
    "small": (
        Task(
            name="digits",
            images="digits",
            n_train=(300, 1257),
            n_splits=1,
            n_features=1000,
            n_choose=1257,
            choose_features=500,
            multipliers=(1.0,),
            methods=embeddings(8, (0.1,), (6,), (0.2,), (8,)),
            kl_splits=0,
        ),
    ),
    "paper": (
        Task(
            name="digits",
            images="digits",
            n_train=(300, 600, 1257),
            n_splits=3,
            n_features=2000,
            n_choose=1257,
            choose_features=1000,
            multipliers=(1.0, 2.0),
            methods=embeddings(8, (0.07, 0.1, 0.15), (5, 6, 8), (0.1, 0.2, 0.3), (4, 6, 8)),
            kl_splits=1,
        ),
        Task(
            name="cats and dogs",
            images="cifar10",
            n_train=(2500, 5000, 10_000),
            n_splits=1,
            n_features=7000,
            n_choose=2500,
            choose_features=1000,
            multipliers=(0.5, 1.0, 2.0),
            methods=embeddings(10, (0.04, 0.07), (8, 10), (0.1, 0.2), (8, 10)),
            kl_splits=0,
        ),
    ),
}
