"""A bandwidth per coordinate: exact gradients, the right coordinates named, the level held."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from bagbasis import MeanMapEmbedding, MomentsEmbedding
from bagbasis.hypotheses import UnbiasedMMD, two_sample_test
from bagbasis.hypotheses.kernels.kernels import Kernel
from bagbasis.hypotheses.samples.samples import read_samples
from bagbasis.hypotheses.two_samples.comparison import TwoSamples
from bagbasis.hypotheses.two_samples.coordinate_widths import in_widths, lost_without, power_slopes
from bagbasis.plotting import plot_coordinates


def samples_of(rng, grouped):
    """24 and 17 rows of three coordinates, whose second differs; in groups of some sizes."""
    X, Y = rng.standard_normal((24, 3)), rng.standard_normal((17, 3)) * [1, 2, 1]
    groups = {"a": rng.integers(0, 6, 24), "b": 10 + rng.integers(0, 5, 17)} if grouped else None
    return TwoSamples(*read_samples({"a": X, "b": Y}, groups=groups), "permutation", 1, 0)


@pytest.mark.parametrize("grouped", [False, True])
def test_gradient(grouped):
    """The value is MMD_u² over the witness's part of its standard error, by another road; its
    gradient is that of differences."""
    samples = samples_of(np.random.default_rng(0), grouped)
    logs = np.array([0.3, -0.5, 0.8])
    value, slope = power_slopes(samples, samples.rows, logs)
    scaled = in_widths(samples, np.exp(logs))
    kernel = Kernel("gaussian", 1.0)
    mmd = UnbiasedMMD().measure(scaled, kernel).statistic
    gram = kernel(scaled.rows, scaled.rows)
    of_rows = gram[:, :24].mean(axis=1) - gram[:, 24:].mean(axis=1)
    first, second = samples.residuals(np.bincount(samples.units, of_rows)[:, None])
    error = (4 * (first**2).sum() + 4 * (second**2).sum()) ** 0.5
    assert value == pytest.approx(mmd / error, rel=1e-10)
    for k in range(3):
        step = 1e-5 * np.eye(3)[k]
        up, down = (power_slopes(samples, samples.rows, logs + s)[0] for s in (step, -step))
        assert slope[k] == pytest.approx((up - down) / 2e-5, rel=1e-6, abs=1e-9)


def test_lost_without():
    """As t of the rows without the coordinate."""
    samples = samples_of(np.random.default_rng(5), grouped=True)
    whole = power_slopes(samples, samples.rows, np.zeros(3))[0]
    rest = [
        power_slopes(samples, np.delete(samples.rows, k, axis=1), np.zeros(2))[0] for k in (2, 1)
    ]
    lost = lost_without(samples, np.array([2, 1]))
    assert lost == pytest.approx(1 - np.array(rest) / whole, rel=1e-9)


@pytest.mark.long
def test_coordinates_that_differ_are_named():
    """One of ten coordinates is finer in the second sample, in its own units; the others are wide
    and pure noise."""
    rng = np.random.default_rng(1)
    units = np.geomspace(1e-3, 1e3, 10)
    X, Y = rng.standard_normal((2, 600, 10))
    Y[:, 6] = 1.8 * np.sign(Y[:, 6]) * np.abs(Y[:, 6]) ** 0.5
    r = two_sample_test(units * X, units * Y, bandwidth="ard", n_permutations=199)
    assert r.p_value <= 0.01
    lost = np.array(r.details["coordinates"]["lost_without"])
    assert lost.argmax() == 6
    assert lost[6] > 0.8
    assert np.delete(lost, 6).max() < 0.3
    assert r.details["coordinates_that_differ"].startswith("6: ")
    assert "6: " in r.report()
    assert r.details["tested_on"] == {"a": 300, "b": 300} == r.details["chosen_on"]
    assert r.kernel == "gaussian, a bandwidth per coordinate"
    single = two_sample_test(units * X, units * Y, bandwidth="median", n_permutations=199)
    assert single.p_value > 0.05  # it sees the coordinate of the largest numbers


@pytest.mark.long
@pytest.mark.parametrize("statistic", ["mmd_u", "mmd_block", "fourier"])
def test_no_difference_is_no_difference(statistic):
    """Rejections as often as α says, in all statistics of a kernel of rows; a coordinate that does
    not vary is no obstacle."""
    rng, p = np.random.default_rng(2), []
    for seed in range(40):
        X, Y = rng.standard_normal((60, 3)), rng.standard_normal((50, 3))
        X[:, 1] = Y[:, 1] = 4.0
        result = two_sample_test(
            X, Y, statistic=statistic, bandwidth="ard", seed=seed, n_permutations=199
        )
        p.append(result.p_value)
    assert (np.array(p) <= 0.05).mean() <= 0.15
    assert 0.3 <= (np.array(p) <= 0.5).mean() <= 0.72


def test_bags_and_groups():
    """Embeddings of bags are rows, and groups are whole units of one half."""
    rng = np.random.default_rng(3)
    a, b = ([rng.normal(0, s, (20, 2)) for _ in range(40)] for s in (1.0, 1.5))
    assert two_sample_test(a, b, bandwidth="ard", n_permutations=199).p_value <= 0.01
    X, Y = rng.standard_normal((80, 2)), rng.normal([0, 2], 1, (80, 2))
    groups = np.arange(80) // 4, 100 + np.arange(80) // 4
    r, again = (
        two_sample_test(X, Y, bandwidth="ard", groups=groups, n_permutations=199) for _ in range(2)
    )
    assert again.to_dict() == {**r.to_dict(), "seconds": again.seconds}
    assert r.p_value <= 0.01
    assert r.n_units == {"a": 10, "b": 10}


NAMED = ["age", "ldl", "bmi"]


def patients(shift, n_points, seed):
    """Points of patients; in one sample the second coordinate is shifted."""
    frame = pd.DataFrame(np.random.default_rng(seed).normal(size=(n_points, 3)), columns=NAMED)
    frame["ldl"] += shift
    return frame


def test_points_are_told_by_the_names_of_their_coordinates():
    """Names are those of a frame; without names by number."""
    a, b = patients(0, 80, 0), patients(1, 80, 1)
    named = two_sample_test(a, b, bandwidth="ard", n_permutations=19)
    plain = two_sample_test(a.to_numpy(), b.to_numpy(), bandwidth="ard", n_permutations=19)
    assert named.details["coordinates_that_differ"].startswith("ldl: ")
    assert plain.details["coordinates_that_differ"].startswith("1: ")
    assert named.details["coordinates"].pop("names") == NAMED
    assert named.details["coordinates"] == plain.details["coordinates"]


def test_embeddings_are_told_by_what_their_columns_are_made_of():
    """Waves of a mean map by the coordinates that they go along, moments by theirs."""
    ids = np.repeat(range(40), 10)
    a, b = (patients(s, 400, s).assign(id=ids).groupby("id") for s in (0, 1))
    waves = two_sample_test(a, b, bandwidth="ard", n_permutations=19)
    assert re.match(
        r"(sin|cos)\d+\((ldl|ldl,\w+)\): \d+%", waves.details["coordinates_that_differ"]
    )
    moments = two_sample_test(
        a, b, bandwidth="ard", n_permutations=19, embedding=MomentsEmbedding()
    )
    assert moments.details["coordinates_that_differ"].startswith("mean(ldl): ")
    labels = plot_coordinates(moments, ax=Figure().subplots()).get_xticklabels()
    assert labels[0].get_text() == "mean(ldl)"


def test_waves_are_named_by_the_coordinates_of_half_their_square():
    """As few as have so much, the largest first; each name is there once."""
    bags = [np.random.default_rng(i).normal(size=(9, 3)) for i in range(9)]
    embedding = MeanMapEmbedding(n_features=32).fit(bags)
    names = embedding.get_feature_names_out(NAMED)
    assert len(set(names)) == 32
    for j, frequency in enumerate(embedding.spec_.frequencies().T):
        order = np.argsort(-(frequency**2))
        shares = np.cumsum(frequency[order] ** 2) / (frequency**2).sum()
        along = [NAMED[k] for k in order[: 1 + int((shares < 0.5).sum())]]
        assert names[j] == f"sin{j}({','.join(along)})"
        assert names[16 + j] == f"cos{j}({','.join(along)})"
