"""001, §5.1 and Appendix A: kernels of embeddings against those of the true densities."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from bagbasis.embeddings import hdd
from bagbasis.jobs.experiments.data.truncated_mixtures import truncated_mixtures
from bagbasis.jobs.experiments.js_gram import SETTINGS, JSGram, agreement, true_distances
from bagbasis.jobs.experiments.js_gram_report import PAPER
from tests.jobs.running import assert_picture, done, settings
from tests.oracles.hdd import kappa

LEAST_R2 = {"entropies": 0.983, "coefficients": 0.988, "random features": 0.978}
LEAST_DETERMINATION = 0.955


@pytest.fixture(scope="module")
def out_dir(tmp_path_factory):
    """What the command leaves behind at small scale."""
    where = tmp_path_factory.mktemp("js-gram")
    with pytest.MonkeyPatch.context() as coarse:
        coarse.setattr("bagbasis.jobs.pictures.evaluation.DOTS_PER_INCH", 60)
        done("experiment", "js-gram", *settings(out_dir=where))
    return where


@pytest.fixture(scope="module")
def report(out_dir):
    """Its result.json."""
    return json.loads((out_dir / "result.json").read_text())


def test_at_least_as_good_as_the_paper(report):
    """JS from entropies, coefficients and random features is nearer to the truth than printed, and
    not of another scale. Over the ten data sets of scale paper the least R² are .985, .992 and
    .983, and the least 1 − SSE/SST .962."""
    for point in report["points"]:
        for name, printed in PAPER.items():
            found = point["values"]["js"][name]
            assert found["r2"] > LEAST_R2[name] > printed
            assert found["determination"] > LEAST_DETERMINATION


def test_other_distances_and_frequencies(report):
    """All geometries follow their own truth, and orthogonal frequencies have less error."""
    for point in report["points"]:
        for distance in ("js", "hellinger", "tv", "chi2"):
            values = point["values"][distance]
            if distance in SETTINGS["small"].orthogonal:
                plain, other = (values[f"{kind} features"] for kind in ("random", "orthogonal"))
                assert 1 - other["r2"] < 0.8 * (1 - plain["r2"])
            assert values["coefficients"]["r2"] > 0.985
            assert min(each["determination"] for each in values.values()) > 0.92


def test_printed_measure_is_told_apart(monkeypatch):
    """With the measure that the paper prints for JS, 1 + λ² for 1 + 4λ², the same figure falls
    far below the bound: .26 to .37 with three seeds, where ours is .98."""
    grid = np.linspace(0, 12, 200_001)
    density = 1 / (np.cosh(np.pi * grid) * (1 + grid**2))
    distribution = np.cumsum(density) * (grid[1] - grid[0])
    shares = (np.arange(5) + 0.5) / 5
    nodes = np.interp(shares, distribution / distribution[-1], grid)
    weights = np.full(5, distribution[-1] / 5)
    printed = (tuple(nodes.tolist()), tuple(weights.tolist()))
    monkeypatch.setattr(hdd, "lambda_nodes", lambda *args: printed)
    monkeypatch.setitem(SETTINGS, "small", replace(SETTINGS["small"], n_features=2, orthogonal=()))
    true, estimates = JSGram("small", 0, None).kernels("js", 0)
    assert agreement(true, estimates["coefficients"])["determination"] < 0.6


@pytest.mark.parametrize("distance", ["js", "hellinger", "tv", "chi2"])
def test_true_distances_are_those_of_the_definition(distance):
    """The truth is the integral of κ, written independently."""
    _, densities = truncated_mixtures(3, n_mixtures=4, n_points=1)
    expected = np.array([kappa(distance, p, densities).mean(axis=1) for p in densities])
    np.testing.assert_allclose(true_distances(distance, densities), expected, atol=1e-12)


def test_known_densities_are_those_of_the_points():
    """Each density integrates to one, and a bag's points lie where its own density says."""
    bags, densities = truncated_mixtures(1, n_mixtures=3, n_points=20_000)
    np.testing.assert_allclose(densities.mean(axis=1), 1, rtol=1e-3)
    for bag, density in zip(bags, densities, strict=True):
        counts = np.histogram2d(*bag.T, bins=10, range=[(0, 1)] * 2)[0] / len(bag)
        expected = density.reshape(10, 10, 10, 10).mean(axis=(1, 3)) / 100
        np.testing.assert_allclose(counts, expected, atol=0.006)


def test_tables_and_pictures(out_dir, report):
    """The paper's numbers stand beside ours, and both pictures are drawn."""
    [table] = report["tables"]
    rows = {(row[0], row[1]): row for row in table["rows"]}
    assert len(rows) == 11
    for name, printed in PAPER.items():
        assert rows["JS", name][-1] == printed
    assert rows["TV", "coefficients"][-1] is None
    assert "above the paper's on every data set" in " ".join(table["remarks"])
    assert report["pictures"] == ["scatter.png", "agreement.png"]
    for name in report["pictures"]:
        assert_picture(out_dir / name)


def test_data_sets_of_seeds_are_disjoint(tmp_path):
    """Each seed has data sets of its own, at either scale."""
    for scale in SETTINGS:
        seeds = [
            point.params["data_seed"]
            for seed in range(4)
            for point in JSGram(scale, seed, tmp_path).points()
        ]
        assert len(set(seeds)) == len(seeds)
