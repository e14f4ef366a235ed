"""The gates against drift: each finds its kind, and a year of them is as quiet as promised."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest

from bagbasis import (
    BagStore,
    DoubleBasisRegressor,
    ParameterError,
    ProjectionEmbedding,
    RandomFourierFeatures,
)
from bagbasis.hypotheses.nulls.mean_difference import compare_means, staged_p_values
from bagbasis.operations import DriftGate, retrain
from bagbasis.operations.retraining.settings import Spending
from tests.operations.retraining.calendars import share_with_alarms
from tests.operations.retraining.problems import create, spec
from tests.oracles.drift import exact_p_value, mmd_unbiased_by_loop

# ---------------------------------------------------------------------- the test


def test_means_by_loops():
    """Statistic, p-value and effect against pairs, all splits, and variances by numpy."""
    rows = np.random.default_rng(0).standard_normal((10, 3))
    rows[:4] += 1
    is_first = np.arange(10) < 4
    result = compare_means(rows, is_first, 9999, seed=1)
    expected = mmd_unbiased_by_loop(rows @ rows.T, range(4))
    assert result.statistic == pytest.approx(expected, rel=1e-10)
    assert result.p_value == pytest.approx(exact_p_value(rows @ rows.T, range(4)), abs=0.01)
    within = 3 * rows[:4].var(axis=0, ddof=1).sum() + 5 * rows[4:].var(axis=0, ddof=1).sum()
    assert result.effect == pytest.approx(expected / (within / 8), rel=1e-10)


@pytest.mark.long
def test_stages_of_permutations_keep_every_level():
    """20,000 comparisons without a difference, in stages of 19, 190 and 2,000: p is below each
    level as often as it says, within three standard errors, or less often where the stages' shares
    are coarse; and one with a difference gets there."""
    rng, p = np.random.default_rng(2), []
    for seed in range(100):
        rows = rng.standard_normal((16, 200, 2))
        p.append(staged_p_values(rows, np.arange(16) < 8, 19, seed, level=0.001)[1])
    for level in (0.001, 0.005, 0.01, 0.05, 0.1):
        error = 3 * np.sqrt(level * (1 - level) / 20_000)
        coarse = 0 if level == 0.001 else 0.15 * level
        assert -error - coarse < np.mean(np.concatenate(p) <= level) - level < error, level
    rows[:8] += 6
    assert (staged_p_values(rows, np.arange(16) < 8, 19, 0, level=0.001)[1] <= 0.001).all()


# ---------------------------------------------------------------------- level


def test_the_level_is_spent_once():
    """The levels of a horizon add up to the level, also when it changes on the way; then a new one
    begins."""
    gate, spending, levels = DriftGate(level=0.2, horizon=4), Spending(), []
    for total in (0.2, 0.2, 0.1, 0.3, 0.2):
        level, spending = spending.spend(DriftGate(level=total, horizon=4))
        levels.append(level)
    assert levels == pytest.approx([0.05, 0.05, 0.0, 0.2, 0.05])
    assert spending == Spending(1, gate.level / 4)
    with pytest.raises(ParameterError, match=r"horizon of 100,000 rounds .* take fewer rounds"):
        DriftGate(horizon=100_000)


@pytest.mark.long
def test_a_year_without_drift():
    """30 calendars of 365 daily rounds of three gates: the share with an alarm is what is promised,
    within three standard errors. (One level for each round alarms in all of them.)"""
    share = share_with_alarms(n_calendars=30, level=0.3, seed=0)
    assert abs(share - (1 - np.exp(-0.3))) < 3 * np.sqrt(0.26 * 0.74 / 30)


# ---------------------------------------------------------------------- three kinds of drift

KINDS = {
    "none": [],
    "inputs": ["inputs"],  # the coordinate that labels do not depend on
    "concept": ["concept"],  # the same labels, the other way round
    "labels": ["labels"],  # noisier, and right on average
}


def draw(n: int, seed: int, kind: str = "none"):
    """Bags of 20 points of two Beta distributions, and a label that follows from the first."""
    rng = np.random.default_rng(seed)
    a, b = rng.uniform(1, 4, n), rng.uniform(1, 2 if kind == "inputs" else 4, n)
    bags = [np.column_stack([rng.beta(x, 2, 20), rng.beta(y, 2, 20)]) for x, y in zip(a, b)]  # noqa: B905
    noise = (2.0 if kind == "labels" else 0.3) * rng.standard_normal(n)
    return bags, (-1 if kind == "concept" else 1) * (a - 2.5) + noise


@pytest.fixture(scope="module")
def year(tmp_path_factory):
    """A store of 1,200 bags and its champion."""
    folder = tmp_path_factory.mktemp("year")
    create(folder / "bags.zarr").append(*draw(1200, 0))
    retrain(made(folder))
    return folder


def made(folder):
    return with_gate(folder, DriftGate(horizon=30, n_bags=240))


def with_gate(folder, gate):
    bases = (
        ProjectionEmbedding(n_per_dim=3),
        RandomFourierFeatures(n_features=64, scale=2.0, seed=3),
    )
    model = DoubleBasisRegressor(*bases, alpha=1.0, precision="float64")
    return spec(folder, estimator=model, drift=gate)


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_the_right_gate_finds_each_drift(year, tmp_path, kind):
    """Drifts of the inputs, of the labels, and of what links them: the gate of that name alarms,
    and no other one."""
    shutil.copytree(year, tmp_path, dirs_exist_ok=True)
    BagStore.open(tmp_path / "bags.zarr").append(*draw(240, 1, kind))
    report = retrain(made(tmp_path)).report
    gates = report["gates"]["gates"]
    assert list(gates) == ["inputs", "concept", "labels"]
    assert [name for name, actual in gates.items() if actual["drifted"]] == KINDS[kind], gates
    assert len(report["alarms"]) == len(KINDS[kind])


@pytest.mark.long
def test_lines_keep_the_statistic_they_began_with(year, tmp_path):
    """A new sequence compares at many widths; one that an earlier version began goes on by `mmd_u`,
    and a spec that names a statistic is obeyed."""
    shutil.copytree(year, tmp_path, dirs_exist_ok=True)
    path = tmp_path / "registry.retrain" / "state.json"
    state = json.loads(path.read_text())
    assert state["gate_statistic"] == "fuse"
    old = {key: value for key, value in state.items() if key != "gate_statistic"}
    BagStore.open(tmp_path / "bags.zarr").append(*draw(240, 1))
    by_name = {}
    for name, written, input_value in (
        ("new", state, None), ("old", old, None), ("named", old, "fuse"),
    ):  # fmt: skip
        folder = tmp_path / name
        shutil.copytree(year / "registry", folder / "registry")
        shutil.copytree(tmp_path / "bags.zarr", folder / "bags.zarr")
        shutil.copytree(tmp_path / "registry.retrain", folder / "registry.retrain")
        (folder / "registry.retrain" / "state.json").write_text(json.dumps(written))
        asked = made(folder)
        asked = replace(asked, drift=replace(asked.drift, statistic=input_value))
        by_name[name] = retrain(asked).report["gates"]
        saved = json.loads((folder / "registry.retrain" / "state.json").read_text())
        assert saved["gate_statistic"] == by_name[name]["statistic"]
    assert [gates["statistic"] for gates in by_name.values()] == ["fuse", "mmd_u", "fuse"]
    p = {name: gates["gates"]["inputs"]["statistic"] for name, gates in by_name.items()}
    assert p["new"] == p["named"] != p["old"]
    same = [gates["gates"]["concept"] for gates in by_name.values()]
    assert same[0] == same[1] == same[2]  # a mean is compared, by either
