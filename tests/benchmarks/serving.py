"""Serving: densities at the size of 004, §3.5.4 (365 coefficients in, 401 out, D = 15,000), and
requests to `bags serve`."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from bagbasis import (
    Bags,
    DoubleBasisRegressor,
    ProjectionEmbedding,
    RandomFourierFeatures,
    TripleBasisRegressor,
)
from bagbasis.operations import Registry
from tests.jobs.serving import serving as server_of
from tests.passes import kernel_threads

from .data import OUTPUT
from .pairing import Row, pair

N_FEATURES, N_POINTS, N_BAGS = 15_000, 500, 1000
PLACE = OUTPUT / "served"
SERVED = str(PLACE / "registry"), "--token-file", PLACE / "token"
IN_NORM, OUT_NORM = 8.1, 8.4  # balls of 362 and 404 functions in three dimensions


def serving() -> Iterator[Row]:
    """One bag to one density through the public API, and a thousand at a time, against the two
    matrix products that they cannot do without."""
    rng = np.random.default_rng(0)
    bags = [rng.random((N_POINTS, 3), dtype=np.float32) for _ in range(N_BAGS)]
    model = fitted(bags[:64])
    at = rng.random((N_POINTS, 3))
    frequencies = model.features_.second.frequencies().astype(np.float32)
    coef = model.coef_.astype(np.float32)
    s, r = len(frequencies), len(coef)
    a, batch = rng.random((N_BAGS, s), dtype=np.float32), Bags.from_list(bags)

    def floor(n: int) -> None:
        with kernel_threads():
            phases = a[:n] @ frequencies
            np.concatenate([phases, phases], axis=1) @ coef.T

    size = f"{s} in, {r} out, D = {N_FEATURES:,}"
    yield pair(
        f"predict_density of one bag at {N_POINTS} points ({size}) / its two products",
        lambda: model.predict_density(bags[:1], at=at),
        lambda: floor(1),
        repeats=40,
        target="≤ 0.009 s",
        floor=True,
    )
    yield pair(
        f"predict_density of {N_BAGS:,} bags / their two products",
        lambda: model.predict_density(batch, at=at),
        lambda: floor(N_BAGS),
        repeats=5,
        target="≤ 0.3 s",
        floor=True,
    )


def fitted(bags: list[np.ndarray]) -> TripleBasisRegressor:
    """A model of that size; from few bags, as its speed does not depend on them."""
    small = TripleBasisRegressor(
        ProjectionEmbedding(max_norm=IN_NORM),
        RandomFourierFeatures(n_features=64, scale=1.0),
        response_embedding=ProjectionEmbedding(max_norm=OUT_NORM),
        alpha=1.0,
    ).fit(bags, bags)
    wide = RandomFourierFeatures(n_features=N_FEATURES, scale=1.0)
    model, first = small.model_, small.features_.embedding
    features = replace(small.features_, second=wide.resolve(first.n_features, list))
    coef = np.random.default_rng(1).standard_normal((len(small.coef_), N_FEATURES))
    solution = replace(model.solution, coef=coef)
    small.model_ = replace(model, features=features, solution=solution)
    return small


def prepare_first_answer(n_points: int = 200, n_features: int = 2048) -> Callable[[], None]:
    """Return what starts `bags serve`, asks it for one prediction, and stops it."""
    _, bag = _served(n_points, n_features)
    body = json.dumps({"bag": bag.tolist()})

    def answer() -> None:
        with server_of(*SERVED) as server:
            status, _ = server.ask("/predict", body)
            assert status == 200

    return answer


def _served(n_points: int, n_features: int) -> tuple[DoubleBasisRegressor, np.ndarray]:
    """Return a model that is the champion of a new registry, and a bag."""
    rng = np.random.default_rng(0)
    bags = [rng.random((n_points, 2)).round(4) for _ in range(500)]
    model = DoubleBasisRegressor(
        ProjectionEmbedding(), RandomFourierFeatures(n_features=n_features, seed=0), alpha=1.0
    ).fit(bags, [bag.mean() for bag in bags])
    shutil.rmtree(PLACE, ignore_errors=True)
    registry = Registry(SERVED[0])
    registry.promote(registry.register(model))
    return model, bags[0]


def requests(n_points: int = 200, n_features: int = 2048) -> Iterator[Row]:
    """One client on a kept connection against bare `predict` of the same bag: 400 requests per
    second where that takes a millisecond."""
    model, bag = _served(n_points, n_features)
    body = json.dumps({"bag": bag.tolist()})
    with server_of(*SERVED) as server:
        connection = server.connection()
        name = f"request to bags serve on a kept connection / predict, one bag of {n_points} points"
        yield pair(
            f"{name}, D = {n_features:,}",
            lambda: server.ask("/predict", body, connection),
            lambda: model.predict([bag]),
            repeats=400,
            target="≤ 0.0025 s",
            floor=True,
        )
