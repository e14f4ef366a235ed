"""Samples whose coordinates have names are compared by these names."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

from bagbasis import BagStore, DataError, MomentsEmbedding
from bagbasis.densities import ExponentialFamilyDensity
from bagbasis.hypotheses import fit_test, two_sample_test
from bagbasis.operations import DriftDetector, drift_test

RNG = np.random.default_rng(0)
N = 12
TABLE = pd.DataFrame(
    {
        "id": np.repeat(np.arange(2 * N), 9),
        "pulse": RNG.normal(size=18 * N),
        "pressure": RNG.normal(5, 30, 18 * N),
    }
)
FIRST, SECOND = (TABLE[TABLE.id // N == k].reset_index(drop=True) for k in (0, 1))
TURNED, RENAMED = SECOND[["id", "pressure", "pulse"]], SECOND.rename(columns={"pulse": "pulses"})


def groups(table, url):
    return table.groupby("id")


def frames(table, url):
    return [frame.drop(columns="id") for _, frame in table.groupby("id")]


def polars_frames(table, url):
    return [pl.from_pandas(frame) for frame in frames(table, url)]


def store(table, url):
    made = BagStore.create(url, 2, box=[(-200, 200)] * 2, overwrite=True)
    return made.append(frames(table, url))


def part(table, url):
    return store(table, url), 0, N


def points(table, url):
    return table.drop(columns="id")


def polars_points(table, url):
    return pl.from_pandas(points(table, url))


BAGS = [groups, frames, polars_frames, store, part]
TESTS = {
    "two_sample_test": lambda a, b: two_sample_test(a, b, n_permutations=19),
    "pooled": lambda a, b: two_sample_test(a, b, n_permutations=19, unit="point"),
    "drift_test": lambda a, b: drift_test(a, b, n_permutations=19),
    "DriftDetector": lambda a, b: DriftDetector(n_permutations=19, n_frequencies=8).fit(a).test(b),
}


@pytest.mark.long
@pytest.mark.parametrize("kind", BAGS)
@pytest.mark.parametrize("name", TESTS)
def test_bags_are_put_in_one_order(name, kind, tmp_path):
    a = kind(FIRST, tmp_path / "a")
    result, turned = (TESTS[name](a, kind(b, tmp_path / "b")).p_value for b in (SECOND, TURNED))
    assert result == turned
    message = r"(b|new): the coordinates are \['pulses'.*'pulse' is missing \(did you mean 'pulses'"
    with pytest.raises(DataError, match=message):
        TESTS[name](a, kind(RENAMED, tmp_path / "c"))


@pytest.mark.parametrize("kind", [points, polars_points])
def test_points_are_put_in_one_order(kind):
    a, b, turned, renamed = (kind(item, None) for item in (FIRST, SECOND, TURNED, RENAMED))
    for test in (TESTS["two_sample_test"], TESTS["DriftDetector"]):
        assert test(a, b).p_value == test(a, turned).p_value
        with pytest.raises(DataError, match="pulse"):
            test(a, renamed)


def test_one_sample_without_names_is_compared_by_position():
    bags = [frame.to_numpy() for frame in frames(SECOND, None)]
    by_name, by_place = (TESTS["drift_test"](groups(FIRST, None), b) for b in (
        groups(SECOND, None), bags
    ))  # fmt: skip
    assert by_name == by_place


def test_names_of_a_fitted_embedding_are_the_order():
    embedding = MomentsEmbedding().fit(groups(FIRST, None))
    straight, turned = (
        two_sample_test(a, b, embedding=embedding, n_permutations=19).statistic
        for a, b in (
            (groups(FIRST, None), groups(SECOND, None)),
            (frames(FIRST[TURNED.columns], None), groups(TURNED, None)),
        )
    )
    assert straight == turned


def test_a_saved_detector_keeps_the_names(tmp_path):
    made = DriftDetector(n_permutations=19, n_frequencies=8).fit(groups(FIRST, None))
    made.save(tmp_path / "d")
    result = DriftDetector.load(tmp_path / "d")
    assert result.test(groups(TURNED, None)).p_value == made.test(groups(SECOND, None)).p_value
    with pytest.raises(DataError, match="'pulses' is extra"):
        result.test(groups(RENAMED, None))


def test_densities_of_points_compare_names():
    density = ExponentialFamilyDensity(n_features=16, bandwidth=1.0, alpha=1e-3)
    density.fit(frames(FIRST, None))
    straight, turned = points(SECOND, None), points(TURNED, None)
    np.testing.assert_array_equal(density.log_density(straight), density.log_density(turned))
    assert density.score(straight) == density.score(turned)
    gradients = [density.log_density_gradient(x) for x in (straight, turned)]
    np.testing.assert_array_equal(gradients[0], gradients[1][:, ::-1])
    tests = [fit_test(x, density, n_draws=19) for x in (straight, turned)]
    assert tests[0].statistic == tests[1].statistic
    for call in (density.log_density, lambda x: fit_test(x, density, n_draws=19)):
        with pytest.raises(DataError, match="'pulses' is extra"):
            call(points(RENAMED, None))
