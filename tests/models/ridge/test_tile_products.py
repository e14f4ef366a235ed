"""ZᵀZ by tiles of 16-bit floats: as exact as float32 products, whatever the shape.

A machine without these instructions multiplies by SYRK, and says so of `TileProducts`; what holds
for both is tested through `StatisticsBuilder`, as fits use it.
"""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, strategies as st

from bagbasis import Bags, DoubleBasisRegressor, ProjectionEmbedding, RandomFourierFeatures
from bagbasis.core.errors import BagbasisError
from bagbasis.execution.blas import add_gram
from bagbasis.execution.lanes import one_blas_thread, use_cores
from bagbasis.models.ridge.tiles.instructions import has_tiles
from bagbasis.models.ridge.tiles.products import LEAST_FEATURES, TileProducts, tiles_serve
from bagbasis.models.ridge.tiles.tile_kernels import pack_rows
from tests.oracles import ridge
from tests.oracles.ridge_entries import collected, unpacked

pytestmark = pytest.mark.portable

SPLIT = 2.0**-17  # of a product of two numbers of 16 bits


def by_syrk(z):
    """The packed upper triangle of ZᵀZ by one float32 product."""
    square = np.zeros((z.shape[1],) * 2, np.float32, order="F")
    with one_blas_thread():
        add_gram(z.T, square)
    return square.T[np.triu_indices(z.shape[1])].astype(float)


def by_tiles(z):
    """By tiles, where there are any."""
    if not has_tiles():
        with pytest.raises(BagbasisError, match="no tiles"):
            TileProducts(z.shape[1])
        return by_syrk(z)
    gram = np.zeros(z.shape[1] * (z.shape[1] + 1) // 2)
    TileProducts(z.shape[1]).add(gram, z, np.empty((z.shape[1],) * 2, np.float32))
    return gram


def exact(z):
    """In double precision."""
    return ridge.statistics(z, np.zeros((len(z), 1)))["gram"][np.triu_indices(z.shape[1])]


def features(n, d, spread=3.0, seed=0):
    """Cosines of products with ten numbers; a small spread makes all rows nearly equal."""
    rng = np.random.default_rng(seed)
    phases = rng.uniform(0, 2 * np.pi, d)
    products = spread * rng.standard_normal((n, 10)) @ rng.standard_normal((10, d)) / 10**0.5
    return np.cos(products + phases).astype(np.float32)


@given(
    n=st.integers(1, 150),
    d=st.integers(1, 150),
    mean=st.sampled_from([0.0, 1.0, -300.0]),
    seed=st.integers(0, 99),
)
def test_any_shape(n, d, mean, seed):
    """Within the error of numbers of 16 bits, of each entry, whatever is left over at the edges."""
    rng = np.random.default_rng(seed)
    columns = 10.0 ** rng.uniform(-3, 3, d)
    z = (columns * (mean + rng.standard_normal((n, d)))).astype(np.float32)
    # float32's own sums lose n ε of it, and the centre may lie farther away than the numbers
    size = np.abs(z).astype(float) + np.abs(z).max(axis=0)
    bound = (2 * SPLIT + n * 2.0**-23) * exact(size) + 1e-30
    assert np.all(np.abs(by_tiles(z) - exact(z)) <= bound)


@pytest.mark.parametrize("spread", [3.0, 0.3, 0.003])
def test_not_less_exact_than_a_float32_product(spread):
    """Features of any kernel: no sum of n numbers is worse than one after the other, in float32.

    Its k-th step rounds about k m, m ≤ 1/2 the mean of the n products, by 2^-24 / √3 of it in the
    root mean square: 2^-24 m n^1.5 / 3 over all steps. BLAS has several sums, and so less. Of tiles
    each of two numbers is rounded by 2^-17 / √3 of it at most: √2 2^-17 √n / √3 times 1/2 of all.
    """
    n = 4096
    z = features(n, 600, spread)
    truth = exact(z)
    tiles, syrk = (np.sqrt(np.mean((gram - truth) ** 2)) / n for gram in (by_tiles(z), by_syrk(z)))
    in_float32 = 2.0**-24 * n**0.5 / 6
    assert syrk <= in_float32
    assert tiles <= (SPLIT / (6 * n) ** 0.5 if has_tiles() else in_float32)
    assert tiles <= syrk or spread == 3.0


def test_rows_are_packed_within_their_sums():
    """Of a block with few rows only the sums of its tiles are written, none behind them."""
    left, right = np.zeros((2, 2, 2, 4, 16, 16), np.uint32)
    sums, scratch = np.full((4, 32), 7.0), np.zeros((4, 2, 16), np.float32)
    z = features(40, 20)
    given = z, np.zeros(32, np.float32), left, right, sums[:2], scratch, scratch.view(np.uint32)
    pack_rows.py_func(0, 2, *given)  # as Python it would raise IndexError where it writes elsewhere
    np.testing.assert_allclose(sums[:2, :20].sum(axis=0), z.sum(axis=0), atol=1e-4)
    assert (sums[2:] == 7.0).all()


def test_variances_of_features_that_hardly_vary():
    """Rows are split less their centre: what varies in the sixth digit keeps its variance.

    Float32 products would lose it among the squares of the mean.
    """
    z = features(4096, 64, spread=1e-4)
    mean = z.astype(float).mean(axis=0)
    centre = len(z) * np.outer(mean, mean)[np.triu_indices(64)]
    truth = exact(z) - centre
    if has_tiles():
        np.testing.assert_allclose(by_tiles(z) - centre, truth, atol=1e-4 * truth.max())


def test_small_parts_are_not_lost():
    """Squares of low parts count: without them the diagonal would be 10⁻⁶ of itself too small."""
    z = features(8192, 64)
    row = np.arange(64)
    diagonal = row * 64 - row * (row - 1) // 2
    errors = (by_tiles(z) / exact(z) - 1)[diagonal]
    assert abs(errors.mean()) < 2e-7


def test_threads_change_nothing():
    """The same bits from one thread as from all."""
    z = features(2500, 333)
    with use_cores(1):
        alone = by_tiles(z)
    with use_cores(3):
        assert np.array_equal(alone, by_tiles(z))


def test_a_builder_takes_them_where_they_serve():
    """Sums of many features are those of the oracle; of NaN features they are not finite."""
    n, d = 2000, LEAST_FEATURES + 7
    assert tiles_serve(n, d) == has_tiles()
    assert not tiles_serve(n, LEAST_FEATURES - 1)
    z, y = features(n, d), np.random.default_rng(1).random((n, 1))
    weights = np.random.default_rng(2).gamma(1.0, size=n)
    root = np.sqrt(weights)[:, None]
    statistics = collected(z, y, np.float32, weights)
    gram = unpacked(statistics)[2]
    truth = ridge.statistics(root * z, root * y)["gram"]
    np.testing.assert_allclose(gram, truth, atol=2e-6 * n)
    z[1234, 77] = np.nan
    assert not collected(z, y, np.float32).is_finite


def test_a_processor_without_them():
    """None are used, and asking for them is an error: the process would end by a signal."""
    script = (
        "from bagbasis.core.errors import BagbasisError\n"
        "from bagbasis.models.ridge.tiles.products import TileProducts, tiles_serve\n"
        "assert not tiles_serve(10_000, 10_000)\n"
        "try:\n"
        "    TileProducts(64)\n"
        "except BagbasisError as error:\n"
        "    print(error)\n"
    )
    environment = {**os.environ, "NUMBA_CPU_FEATURES": "+sse2,+avx2"}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    assert "has no tiles" in done.stdout


def test_fits_agree_with_double_precision():
    """A fit to more bags than features, by kernels of which some are a hundred times too wide."""
    rng = np.random.default_rng(3)
    bags = Bags.from_list(list(rng.random((1500, 20, 1)) ** rng.uniform(0.5, 2, (1500, 1, 1))))
    y = np.array([bag.mean() for bag in bags])
    for multiplier in (1.0, 100.0):
        predictions = []
        for precision in ("float32", "float64"):
            second = RandomFourierFeatures(n_features=1024, scale_multiplier=multiplier)
            model = DoubleBasisRegressor(
                ProjectionEmbedding(), second, alpha=1e-5 * len(y), precision=precision
            )
            predictions.append(model.fit(bags, y).predict(bags))
        np.testing.assert_allclose(*predictions, atol=2e-5)
