"""What 2LPT leaves at small scale; regression with the cube's symmetries against a dense twin."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from bagbasis.embeddings import index_set
from bagbasis.jobs.experiments.densities.cube_symmetries import (
    AXES,
    SYMMETRY_CLASSES,
    TURNS,
    SymmetricFeatures,
    SymmetricRegression,
    exchange,
    parities,
)
from tests.oracles import ridge

INDICES = index_set(3, max_norm=2.3)


def images(rows, mirrors, axes):
    """Coefficients of mirror images, then with their axes exchanged."""
    signs = (-1.0) ** (INDICES @ mirrors)
    return (rows * signs)[:, exchange(INDICES, axes)]


def drawn(n=60, m=4, seed=0):
    """Pairs that no symmetry holds, and features."""
    rng = np.random.default_rng(seed)
    a = rng.standard_normal((n, len(INDICES))).astype(np.float32)
    a[:, 0] = 1
    b = (0.7 * a + 0.3 * np.sin(a[:, ::-1]) + 0.1).astype(np.float32)
    return (a, b), SymmetricFeatures.draw(a, INDICES, m, 2.3, 0.05, 0)


def test_against_all_images_of_the_pairs():
    """The rows of a plain ridge: 8 mirror images in 3 turns, with features of all images."""
    (a, b), features = drawn()
    model = SymmetricRegression.fit((a[:45], b[:45]), (a[45:], b[45:]), features)
    mirrors = list(product((0, 1), repeat=3))
    both, remaining = list(product(mirrors, TURNS)), b - model.copy.predict(a)
    every_a, every_b = (np.concatenate([images(x, *g) for g in both]) for x in (a, remaining))

    def plain(rows):
        phases = np.hstack([images(rows, g, AXES[0]) @ features.frequencies for g in mirrors])
        return np.hstack([np.sin(phases), np.cos(phases)]) / np.sqrt(phases.shape[1])

    new = drawn(9, seed=1)[0][0]
    for rows, solution, c in zip(
        features.rows(new), model.solutions, SYMMETRY_CLASSES, strict=True
    ):
        twin = ridge.ridge(plain(every_a), every_b, 8 * solution.alpha)
        expected = ridge.predict(plain(new), twin)[:, parities(INDICES) == c]
        values = rows @ solution.coef.T + solution.intercept
        np.testing.assert_allclose(values, expected, atol=1e-4 * np.abs(expected).max())


@pytest.mark.parametrize("axes", AXES)
def test_images_of_a_bag_have_the_images_of_its_prediction(axes):
    """All 48, for pairs that have no symmetry themselves."""
    (a, b), features = drawn()
    model = SymmetricRegression.fit((a[:45], b[:45]), (a[45:], b[45:]), features)
    for mirrors in product((0, 1), repeat=3):
        ours = model.predict(images(a[:5], np.array(mirrors), axes).astype(np.float32))
        np.testing.assert_allclose(ours, images(model.predict(a[:5]), np.array(mirrors), axes),
                                   atol=1e-4)  # fmt: skip
