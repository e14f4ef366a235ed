"""The sizes and parameters of `rectify-2lpt` at both scales."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Settings:
    """A scale of the experiment.

    Attributes
    ----------
    train_boxes, test_boxes : int
    train_views : int
        Times each training box is cut, shifted and turned; test boxes are cut once.
    boxes : dict
        Parameters of `datasets.NBody`: all cubes have 16 Mpc/h a side and 512 particles on average.
    embedding, response_embedding : dict
        Parameters of `ProjectionEmbedding`, the first and the third basis.
    n_features : int
        D.
    scale_multipliers : tuple of float
        σ over the median distance; the one of the least generalised cross-validation score is
        taken.
    alphas : tuple of float or None
        λ to choose from by the same score; None: the estimator's default.
    timed : tuple of int
        Training pairs of the smoothers that are timed, beside the one of all pairs.
    n_queries : int
        Bags predicted at once where batches are timed.
    n_rounds : int
        Of timing, each method once a round.
    """

    train_boxes: int
    test_boxes: int
    train_views: int
    boxes: dict[str, Any]
    embedding: dict[str, Any]
    response_embedding: dict[str, Any]
    n_features: int
    scale_multipliers: tuple[float, ...]
    alphas: tuple[float, ...] | None
    timed: tuple[int, ...]
    n_queries: int = 256
    n_rounds: int = 9


SETTINGS = {
    "small": Settings(
        train_boxes=24,
        test_boxes=8,
        train_views=1,
        boxes={"n_particles": 32, "n_cubes": 4, "box_size": 64.0, "n_steps": 10},
        embedding={"max_norm": 4.0},
        response_embedding={"max_norm": 4.0},
        n_features=1000,
        scale_multipliers=(2.0, 4.0),
        alphas=None,
        timed=(200, 400, 800),
        n_rounds=15,
    ),
    "paper": Settings(
        train_boxes=13,
        test_boxes=2,
        train_views=8,
        boxes={"n_particles": 128, "n_cubes": 16, "box_size": 256.0},
        embedding={"max_norm": 8.2},
        response_embedding={"max_norm": 8.5},
        n_features=8192,
        scale_multipliers=(2.0,),
        alphas=None,
        timed=(1_000, 3_000, 10_000, 30_000),
    ),
}
