"""`fit_test`: what it finds, its level, series and groups, and refusals."""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis import BagbasisError
from bagbasis.densities import Densities
from bagbasis.hypotheses import FSSD, KSD, MixtureScore, fit_test
from tests.oracles import dependence

NORMAL = MixtureScore([0.0])
SERIES = Densities([[1.0, 0.4, -0.2]], [[0], [1], [2]], basis="cosine", box=[(0.0, 2.0)])


def test_value_of_all_pairs():
    """By the Stein kernel, pair by pair, with the median distance as bandwidth."""
    x = np.random.default_rng(0).normal(size=8)
    result = fit_test(x, NORMAL, statistic="ksd", n_draws=9)
    width = np.median(np.abs(np.subtract.outer(x, x))[np.triu_indices(8, 1)])
    pairs = [
        dependence.stein_kernel(x[[i]], x[[j]], -x[[i]], -x[[j]], 1.0, 1.0, width)
        for i in range(8) for j in range(8) if i != j
    ]  # fmt: skip
    assert result.statistic == pytest.approx(np.mean(pairs))
    own = [dependence.stein_kernel(v, v, -v, -v, 1.0, 1.0, width) for v in x[:, None]]
    assert result.effect == pytest.approx(result.statistic / np.mean(own))
    value = fit_test(x, lambda points: -points, statistic="ksd", n_draws=9)
    assert (value.statistic, value.p_value) == (result.statistic, result.p_value)


@pytest.mark.parametrize("statistic", ["ksd", "fssd", FSSD(n_locations=2, learn=0.3)])
def test_the_right_density_is_told_from_others(statistic):
    """Normal points, points of a mixture, points of a series with edges; the same by the seed."""
    rng = np.random.default_rng(1)
    mixture = MixtureScore([[-2.0], [2.0]], 0.5)
    mixed = rng.choice([-2.0, 2.0], 400) + 0.5**0.5 * rng.normal(size=400)
    cases = [(NORMAL, rng.normal(size=400)), (mixture, mixed), (SERIES, SERIES.sample(400)[0])]
    flat = Densities([[1.0]], [[0]], basis="cosine", box=[(0.0, 2.0)])
    wrong = [(MixtureScore([0.5]), cases[0][1]), (NORMAL, mixed), (flat, cases[2][1])]
    for score, x in cases:
        assert fit_test(x, score, statistic=statistic).p_value > 0.02
    for score, x in wrong:
        result = fit_test(x, score, statistic=statistic)
        assert result.p_value < 0.01
        again = fit_test(x, score, statistic=statistic)
        assert (again.statistic, again.p_value) == (result.statistic, result.p_value)
    assert result.to_dict()["question"] == "fit"


def _waves(rng, n, frequency=6.0, height=1.0):
    """Draw from the normal distribution with waves, of density φ(x) (1 + cos(frequency · x))."""
    x = rng.normal(size=8 * n)
    return x[2 * rng.random(8 * n) < 1 + height * np.cos(frequency * x)][:n]


def test_the_default_detects_waves_and_shifts():
    """Twelve samples each: waves that the median width does not see, shifts, and neither."""
    rng = np.random.default_rng(7)
    draws = {
        "waves": lambda: _waves(rng, 150),
        "shift": lambda: rng.normal(0.6, 1, 60),
        "spread": lambda: rng.normal(0, 1.6, 80),
        "none": lambda: rng.normal(size=60),
    }
    rejected = {
        name: sum(fit_test(draw(), NORMAL, n_draws=99, seed=i).p_value <= 0.05 for i in range(12))
        for name, draw in draws.items()
    }
    assert min(rejected[name] for name in ("waves", "shift", "spread")) >= 9
    assert rejected["none"] <= 2


def test_the_better_rank_is_of_one_set_of_draws():
    """The result names the better statistic, and its effect is that of the width it takes."""
    rng = np.random.default_rng(8)
    result = fit_test(_waves(rng, 300), NORMAL, n_draws=199)
    x = rng.normal(0.7, 1, 80)
    shifted = fit_test(x, NORMAL, n_draws=199)
    assert result.details["better_of_two"] == "seven widths"
    assert max(result.p_value, shifted.p_value) <= 0.01
    assert shifted.details["better_of_two"] == "the kernel's width"
    assert shifted.effect == fit_test(x, NORMAL, statistic="ksd", n_draws=199).effect


def test_a_search_that_leaves_the_points_finds_nothing(monkeypatch):
    """Where no location has a positive value the search may end far away: p is 1, effect 0."""
    monkeypatch.setattr(
        "bagbasis.hypotheses.goodness_of_fit.learn_stein_locations",
        lambda scored, v, width: (v + 1e6, width),
    )
    result = fit_test(np.random.default_rng(0).normal(size=100), NORMAL, statistic=FSSD(learn=0.3))
    assert (result.p_value, result.effect) == (1.0, 0.0)


@pytest.mark.long
@pytest.mark.parametrize(("statistic", "n"), [("ksd", 60), ("fssd", 300)])
def test_level(statistic, n):
    """p ≤ .1 in a tenth of 200 samples of the right distribution, within three standard errors."""
    rng, right = np.random.default_rng(2), MixtureScore([0.0, 0.0])
    p = [
        fit_test(rng.normal(size=(n, 2)), right, statistic=statistic, n_draws=199)
        for _ in range(200)
    ]  # fmt: skip
    share = np.mean([value.p_value <= 0.1 for value in p])
    assert share == pytest.approx(0.1, abs=3 * (0.09 / 200) ** 0.5)


@pytest.mark.long
def test_series_and_groups():
    """Normal points that move slowly, or tens of equal ones: signs must do so, too."""
    rng = np.random.default_rng(3)
    by_name = {"slow": [], "forgets": [], "points": [], "groups": []}
    groups = np.repeat(np.arange(20), 10)
    for _ in range(40):
        steps = rng.normal(size=200)
        for t in range(1, 200):
            steps[t] = 0.9 * steps[t - 1] + 0.19**0.5 * steps[t]
        tens = np.repeat(rng.normal(size=20), 10) * 0.9**0.5 + 0.1**0.5 * rng.normal(size=200)
        more = {"score": NORMAL, "n_draws": 99}
        by_name["slow"].append(fit_test(steps, **more).p_value)
        by_name["forgets"].append(
            fit_test(steps, statistic=KSD(correlation_length=20.0), **more).p_value
        )
        by_name["points"].append(fit_test(tens, **more).p_value)
        by_name["groups"].append(fit_test(tens, groups=groups, **more).p_value)
    rejected = {name: np.mean(np.array(p) <= 0.1) for name, p in by_name.items()}
    assert min(rejected["slow"], rejected["points"]) > 0.4
    assert max(rejected["forgets"], rejected["groups"]) < 0.25


@pytest.mark.parametrize(
    ("x", "score", "more", "text"),
    [
        (np.zeros((9, 2)), NORMAL, {}, "all rows are alike"),
        (np.arange(9), MixtureScore([0.0, 0.0]), {}, "dimension 1, the density has 2"),
        ([np.zeros((3, 1)), np.ones((3, 1))], NORMAL, {}, "one point per bag"),
        (np.arange(9), SERIES, {}, "point 3: the density is 0"),
        (np.arange(9), NORMAL, {"statistic": "fssd", "groups": np.arange(9)}, "take 'ksd_ranks'"),
        (np.arange(9), NORMAL, {"null": "permutation"}, "'ksd_ranks' admits"),
        (np.arange(9), NORMAL, {"statistic": FSSD(learn=0.1)}, "both need 4"),
        (
            np.arange(50),
            NORMAL,
            {"statistic": FSSD(learn=0.3)},
            "35 points .*; expected 60 or more",
        ),
        (np.arange(1), NORMAL, {}, "1 point"),
    ],
)
def test_refusals(x, score, more, text):
    with pytest.raises(BagbasisError, match=text):
        fit_test(x, score, **more)
