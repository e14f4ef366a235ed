"""`RandomFourierFeatures`: a scikit-learn transformer, a kernel approximation, a pure function."""

from __future__ import annotations

import itertools
import pickle
from functools import partial

import numpy as np
import pytest
from scipy.linalg import hadamard

from bagbasis import ParameterError, RandomFourierFeatures
from bagbasis.data.store.sampling import MEDIAN_ROWS, median_distance, spread_rows
from bagbasis.embeddings import FourierSpec
from bagbasis.embeddings.random_features import frequencies
from bagbasis.embeddings.random_features.fourier import frequency_bytes
from bagbasis.embeddings.random_features.frequencies import (
    FREQUENCIES_PER_BLOCK,
    draw_frequencies,
    draw_hadamard,
)
from tests.oracles.fourier import (
    features,
    gaussian_kernel,
    median_distance_by_loop,
    paired_variance,
)
from tests.traced import peak_of

RNG = np.random.default_rng(0)
DTYPES = (np.float32, np.float64)


def transformed(spec, rows):
    out = np.empty((len(rows), spec.n_features), dtype=rows.dtype)
    spec.transform(rows, out)
    return out


@pytest.mark.long
@pytest.mark.parametrize("orthogonal", [False, True])
def test_error_falls_with_the_root_of_the_number_of_features(orthogonal):
    """z(a)ᵀz(b) approximates the Gaussian kernel, with an error of about D^(−1/2)."""
    rows = RNG.standard_normal((60, 3))
    kernel = gaussian_kernel(rows, rows, 1.5)
    errors = []
    for n_features in (64, 256, 1024, 4096):
        squares = []
        for seed in range(12):
            z = transformed(
                FourierSpec(3, n_features, scale=1.5, seed=seed, orthogonal=orthogonal), rows
            )
            squares.append(np.mean((z @ z.T - kernel) ** 2))
        errors.append(np.sqrt(np.mean(squares)))
    slope = np.polyfit(np.log([64, 256, 1024, 4096]), np.log(errors), 1)[0]
    assert -0.6 < slope < -0.4
    assert errors[-1] < 0.02


def test_variance_is_that_of_paired_features():
    """Var z(x)ᵀz(y) = (1/D)[1 + k(2Δ) − 2k(Δ)²] over the draw of the D/2 frequencies, here groups
    of those of one spec, which are independent."""
    delta = np.array([[0.3, 0.1], [1.0, -0.5], [2.0, 2.0]])
    rows = np.concatenate([np.zeros((1, 2)), delta])
    n_features, n_draws = 32, 4000
    z = transformed(FourierSpec(2, n_features * n_draws, scale=1.2, seed=0), rows)
    pairs = (z[1:] * z[0]).reshape(3, 2, n_draws, n_features // 2)  # sines, then cosines
    products = n_draws * pairs.sum(axis=(1, 3)).T
    expected = paired_variance(delta, 1.2, n_features)
    np.testing.assert_allclose(products.var(axis=0), expected, rtol=0.12)
    kernel = gaussian_kernel(rows[:1], rows[1:], 1.2)[0]
    assert (np.abs(products.mean(axis=0) - kernel) < 4 * np.sqrt(expected / n_draws)).all()


def test_double_precision_is_exact():
    """float64 in, float64 out: numpy's sine and cosine of the frequencies."""
    spec = FourierSpec(6, 100, scale=0.1, seed=5)
    rows = RNG.standard_normal((50, 6))
    np.testing.assert_allclose(
        transformed(spec, rows), features(rows, spec.frequencies()), atol=1e-14
    )


@pytest.mark.parametrize("orthogonal", [False, True])
@pytest.mark.parametrize("n_inputs", [1, 3, 40])
def test_more_features_keep_the_first_ones(orthogonal, n_inputs):
    """Frequencies depend on the seed and their block alone: longer specs start like shorter."""
    few, many = (
        FourierSpec(n_inputs, n, scale=1.3, seed=7, orthogonal=orthogonal).frequencies()
        for n in (2 * 150, 2 * 700)
    )
    assert few.shape == (n_inputs, 150)
    assert many.shape == (n_inputs, 700)
    np.testing.assert_array_equal(few, many[:, :150])


@pytest.mark.parametrize("seed", [0, 2**63, 2**64 - 1])
def test_frequencies_are_those_of_the_counter(seed):
    """Block b is Philox keyed by (seed, b), for seeds over the whole range; no two are alike."""
    frequencies = FourierSpec(3, 2 * 600, scale=2.0, seed=seed).frequencies()
    for block in range(3):
        generator = np.random.Generator(
            np.random.Philox(key=np.array([seed, block], dtype=np.uint64))
        )
        part = frequencies[:, block * FREQUENCIES_PER_BLOCK : (block + 1) * FREQUENCIES_PER_BLOCK]
        expected = generator.standard_normal((FREQUENCIES_PER_BLOCK, 3)).T / 2.0
        np.testing.assert_array_equal(part, expected[:, : part.shape[1]])
    other = FourierSpec(3, 2 * 600, scale=2.0, seed=seed ^ 1).frequencies()
    assert not np.isin(frequencies, other).any()
    assert len(np.unique(frequencies)) == frequencies.size


def test_orthogonal_blocks():
    """Within a block of n_inputs the frequencies are orthogonal, with the lengths of Gaussian
    ones: a chi distribution of n_inputs degrees of freedom."""
    s, n_blocks = 12, 200
    frequencies = FourierSpec(s, 2 * s * n_blocks, scale=1.0, seed=1, orthogonal=True).frequencies()
    for block in np.split(frequencies, n_blocks, axis=1):
        gram = block.T @ block
        np.testing.assert_allclose(gram, np.diag(np.diag(gram)), atol=1e-12)
    squares = (frequencies**2).sum(axis=0)
    n = len(squares)
    assert abs(squares.mean() - s) < 4 * np.sqrt(2 * s / n)
    assert abs(squares.var() - 2 * s) < 4 * 2 * s * np.sqrt((2 + 12 / s) / n)
    directions = frequencies / np.sqrt(squares)
    assert np.abs(directions.mean(axis=1)).max() < 4 / np.sqrt(s * n)


def test_few_columns_of_a_large_block(monkeypatch):
    """With many inputs, only the used columns are decomposed and kept. They equal those of the
    whole block, and asking for more columns keeps the first ones."""
    draw = partial(draw_frequencies, "gaussian", 60, scale=2.0, seed=3, orthogonal=True)
    whole = draw(n_frequencies=90)
    monkeypatch.setattr(frequencies, "DECOMPOSED_WHOLE", 59)
    monkeypatch.setattr(frequencies, "DRAWN_AT_ONCE", 7 * 60)
    for n in (1, 7, 60, 73, 90):
        np.testing.assert_allclose(draw(n_frequencies=n), whole[:, :n], rtol=0, atol=1e-12)
    n_inputs = 3000
    monkeypatch.undo()
    rows = partial(draw_frequencies, "gaussian", n_inputs, 8, 1.0, 0, orthogonal=True)
    assert peak_of(rows, n_times=1) < 8 * n_inputs**2 / 1.5


def test_median_scale():
    """ "median" is the median distance of pairs of rows, times the multiplier."""
    rows = RNG.standard_normal((63, 4)) * [1, 2, 3, 4] + 1e3
    median = median_distance_by_loop(rows)
    assert RandomFourierFeatures().fit(rows).spec_.scale == pytest.approx(median, rel=1e-6)
    fitted = RandomFourierFeatures(scale_multiplier=0.5).fit(rows)
    assert fitted.spec_.scale == pytest.approx(0.5 * median, rel=1e-6)
    assert RandomFourierFeatures(scale=3, scale_multiplier=9.0).fit(rows).spec_.scale == 3.0


def test_median_of_many_rows_uses_a_spread_sample():
    """More rows than the sample are thinned evenly, first and last included."""
    rows = np.arange(10_000.0)[:, None]
    sample = spread_rows(rows, MEDIAN_ROWS)
    assert len(sample) == MEDIAN_ROWS
    assert sample[[0, -1], 0].tolist() == [0, 9999]
    fitted = RandomFourierFeatures().fit(rows)
    assert fitted.spec_.scale == pytest.approx((1 - np.sqrt(0.5)) * 10_000, rel=0.01)


@pytest.mark.parametrize("size", [1e-9, 1.0, 1e9])
def test_median_is_of_any_unit(size):
    """The unit of the rows only multiplies the scale."""
    rows = RNG.standard_normal((41, 3))
    expected = size * median_distance(rows)
    assert median_distance(size * rows) == pytest.approx(expected, rel=1e-9)


def test_median_of_equal_rows_is_one():
    """When most rows are the same there is no width to take, and no rounding is taken for one."""
    rows = RNG.standard_normal((1, 50))
    assert median_distance(np.repeat(rows, 9, axis=0)) == 1.0
    assert median_distance(rows) == 1.0
    for n_columns in range(1, 60):
        same = np.repeat(RNG.standard_normal((1, n_columns)), 40, axis=0)
        others = RNG.standard_normal((10, n_columns))
        assert median_distance(np.concatenate([same, others])) == 1.0


def test_spec_travels_light():
    """A spec of any size pickles to its few fields; nothing it caches goes along."""
    spec = FourierSpec(100, 20_000, scale=1.0)
    assert spec.frequencies().shape == (100, 10_000)
    assert len(pickle.dumps(spec)) < 500
    assert pickle.loads(pickle.dumps(spec)) == spec == FourierSpec(**spec.to_dict())


def test_frequencies_can_not_be_changed():
    """They are cached and shared by every user of the spec."""
    with pytest.raises(ValueError, match="read-only"):
        FourierSpec(2, 4, scale=1.0).frequencies()[0, 0] = 0


def test_names():
    """Feature names say which half and which frequency."""
    fitted = RandomFourierFeatures(n_features=4).fit(RNG.standard_normal((5, 2)))
    assert fitted.get_feature_names_out().tolist() == ["sin0", "sin1", "cos0", "cos1"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n_inputs", [1, 8, 11, 70])
def test_structured_frequencies(n_inputs, dtype):
    """Products of Hadamard matrices with signs, in any number; more keep the first ones; phases
    are those of the whole matrix, and its columns are orthogonal where they are whole."""
    order = max(8, 2 ** int(np.ceil(np.log2(n_inputs))))
    spec = FourierSpec(n_inputs, 2 * (3 * order + 1), scale=1.3, seed=7, structure="hadamard")
    signs, lengths = draw_hadamard(n_inputs, 3 * order + 1, 1.3, 7, np.float64)
    truth = []
    for turns, length in zip(signs, lengths, strict=True):
        product = np.eye(order)
        for turn in turns:
            product = hadamard(order) @ (turn[:, None] * product)
        truth.append((length[:, None] * product)[:, :n_inputs])
    frequencies = spec.frequencies()
    np.testing.assert_allclose(frequencies, np.concatenate(truth)[: 3 * order + 1].T, rtol=1e-12)
    fewer = FourierSpec(n_inputs, 20, scale=1.3, seed=7, structure="hadamard").frequencies()
    np.testing.assert_array_equal(fewer, frequencies[:, :10])
    rows = RNG.standard_normal((30, n_inputs)).astype(dtype)
    np.testing.assert_allclose(
        transformed(spec, rows),
        features(rows, frequencies),
        atol=1e-5 if dtype == np.float32 else 1e-13,
    )
    if n_inputs == order:
        gram = frequencies[:, :order].T @ frequencies[:, :order]
        np.testing.assert_allclose(gram, np.diag(np.diag(gram)), atol=1e-9)


@pytest.mark.long
def test_structured_features_approximate_the_kernel():
    """As well as independent ones; and dense ones are described as they were before."""
    rows = RNG.standard_normal((40, 60)) / 6
    kernel = gaussian_kernel(rows, rows, 1.5)
    error = {
        structure: np.mean(
            [
                np.mean((z @ z.T - kernel) ** 2)
                for seed in range(20)
                for z in [
                    transformed(
                        FourierSpec(
                            60, 512, scale=1.5, seed=seed, orthogonal=False, structure=structure
                        ),
                        rows,
                    )
                ]
            ]
        )
        for structure in ("dense", "hadamard")
    }
    assert error["hadamard"] < 1.1 * error["dense"]
    assert "structure" not in FourierSpec(3, 4, scale=1.0).to_dict()
    spec = FourierSpec(3, 4, scale=1.0, structure="hadamard")
    assert FourierSpec(**spec.to_dict()) == spec
    for wrong in ({"structure": "sparse"}, {"structure": "hadamard", "orthogonal": True}):
        with pytest.raises(ParameterError, match="structure"):
            RandomFourierFeatures(**wrong).fit(rows)


@pytest.mark.parametrize("n_inputs", [500, 1000])
def test_memory_of_frequencies_is_declared(n_inputs):
    """While they are drawn, too: neither less than they take nor half as much again."""
    seeds = itertools.count()
    declared = frequency_bytes(FourierSpec(n_inputs, 600, scale=1.0), np.float64)
    peak = peak_of(lambda: FourierSpec(n_inputs, 600, scale=1.0, seed=next(seeds)).frequencies())
    assert peak < declared < 1.5 * peak
