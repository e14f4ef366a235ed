"""Samples of one donor are alike: tests and intervals of donors, and the page that shows them."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bagbasis import DoubleBasisRegressor, MeanMapEmbedding, MomentsEmbedding
from bagbasis.hypotheses import independence_test, two_sample_test
from bagbasis.singlecell import BagbasisSamples
from tests.ingest.formats.annotated import annotated

PAGE = Path(__file__).parents[2] / "docs" / "single-cell.md"
N_DONORS, N_SAMPLES, N_CELLS = 12, 6, 20
MEAN_MAP = MeanMapEmbedding(n_features=32, bandwidth=2.0)


def donors(rng, first=0):
    """Samples (bags) of donors who differ, and the number of each sample's donor."""
    place = np.repeat(rng.normal(size=(N_DONORS, 2)), N_SAMPLES, axis=0)
    bags = [(p + rng.normal(size=(N_CELLS, 2))).astype(np.float32) for p in place]
    return bags, np.repeat(first + np.arange(N_DONORS), N_SAMPLES)


@pytest.mark.long
def test_groups_of_donors_without_a_difference_are_not_told_apart():
    """At most 5 % and chance of 40 tests of donors reject; of tests of samples, more than half."""
    options = {"n_permutations": 99, "embedding": MEAN_MAP}
    rejected = {"donors": 0, "samples": 0}
    for seed in range(40):
        rng = np.random.default_rng(seed)
        (a, of_a), (b, of_b) = donors(rng), donors(rng, N_DONORS)
        result = two_sample_test(a, b, groups=(of_a, of_b), **options)
        rejected["donors"] += result.p_value <= 0.05
        rejected["samples"] += two_sample_test(a, b, **options).p_value <= 0.05
    assert rejected["donors"] <= 6  # more than 6 of 40 at a level of .05: 1 in 300
    assert rejected["samples"] > 20


def test_a_difference_between_donors_is_found():
    """Twelve donors on each side whose cells lie elsewhere."""
    rng = np.random.default_rng(0)
    (a, of_a), (b, of_b) = donors(rng), donors(rng, N_DONORS)
    b = [bag + np.float32(3) for bag in b]
    assert two_sample_test(a, b, groups=(of_a, of_b), embedding=MEAN_MAP).p_value < 0.01


@pytest.mark.long
def test_a_label_of_donors_that_says_nothing_of_cells():
    """Independence with donors as units holds its level; with samples it does not."""
    rejected = {"donors": 0, "samples": 0}
    for seed in range(40):
        rng = np.random.default_rng(seed)
        bags, of = donors(rng)
        age = rng.normal(size=N_DONORS)[of]
        options = {"n_permutations": 99}
        rejected["donors"] += independence_test(bags, age, groups=of, **options).p_value <= 0.05
        rejected["samples"] += independence_test(bags, age, **options).p_value <= 0.05
    assert rejected["donors"] <= 6
    assert rejected["samples"] > 20


@pytest.mark.parametrize("shift", [0.0, 2.0])
def test_intervals_of_a_cohort_hold_its_donors(shift):
    """Cohort two has another distribution of labels; donors of it calibrate, others are covered."""
    rng = np.random.default_rng(1)
    n = 240
    scale = rng.uniform(0.5, 2, n)
    bags = [rng.normal(0, s, (60, 2)).astype(np.float32) for s in np.repeat(scale, 2)]
    donor = np.repeat(np.arange(n), 2)
    label = np.repeat(scale + rng.normal(0, 0.1, n), 2)
    first, calibrating, new = (np.flatnonzero((donor // 80) == part) for part in range(3))
    label[donor >= 80] += shift
    pick = [[bags[i] for i in part] for part in (first, calibrating, new)]
    model = DoubleBasisRegressor(MomentsEmbedding()).fit(pick[0], label[first])
    model.conformalize(pick[1], label[calibrating], groups=donor[calibrating])
    low, high = model.predict_interval(pick[2], coverage=0.8)
    inside = (low <= label[new]) & (label[new] <= high)
    assert 0.68 < inside.mean() < 0.95  # 80 donors calibrate, 80 are judged
    assert ((high - low).mean() > 3) == (shift > 0)


@pytest.mark.long
def test_the_page_runs(tmp_path, monkeypatch):
    """All programs of the page, on cells of 48 donors in two cohorts with two samples each."""
    rng = np.random.default_rng(0)
    donor = np.repeat(np.arange(48), 2 * 60)
    place = rng.normal(size=(48, 3))[donor] + 2.0 * (donor[:, None] % 2)
    obs = pd.DataFrame(
        {
            "sample": [f"s{i}" for i in np.repeat(np.arange(96), 60)],
            "donor": [f"d{i}" for i in donor],
            "disease": np.where(donor % 2, "yes", "no"),
            "cohort": np.where(donor < 24, "one", "two"),
            "age": 40 + 10 * place.mean(axis=1),
        },
    )
    cells = (place + rng.normal(size=place.shape)).astype(np.float32)
    monkeypatch.chdir(tmp_path)
    space = {"adata": annotated(obs, cells, ["x", "y", "z"], X_pca=cells)}
    space["adata"].write_zarr("cells.zarr")
    for program in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL):
        assert len(program.splitlines()) < 15
        exec(compile(program, "single-cell.md", "exec"), space)  # noqa: S102 - our own page
    assert space["store"].n_bags == 96
    np.testing.assert_allclose(space["distances"], space["distances"].T)
    assert isinstance(space["samples"], BagbasisSamples)
    assert space["result"].p_value < 0.05
    age, there = space["age"][space["there"]], space["there"]
    inside = (space["low"] <= age) & (age <= space["high"])
    assert len(there) == 48
    assert inside.mean() >= 0.8
