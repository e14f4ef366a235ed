"""`bags test`: the table, the report and the picture; wrong keys are one line."""

from __future__ import annotations

import json

import numpy as np
import pytest

from bagbasis import BagStore, MomentsEmbedding
from bagbasis.hypotheses import (
    NFSIC,
    FourierMMD,
    MixtureScore,
    fit_test,
    independence_test,
    two_sample_test,
)
from tests.jobs.running import CONFIGS, assert_picture, done, refused, settings


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Thirty bags, and twenty more that are shifted; ten days of five bags."""
    rng = np.random.default_rng(0)
    bags = [(i >= 30) + rng.standard_normal((8, 2)) for i in range(50)]
    days = np.arange(50) // 5
    url = tmp_path_factory.mktemp("tests") / "bags.zarr"
    return BagStore.create(url, 2, ["day"]).append(bags, days)


def test_two_sample(store, tmp_path):
    """As the function finds it, of two ranges of one store."""
    wanted = {"a_url": store.url, "a_bags": "[0, 30]", "b_bags": "[30, 50]"}
    more = {"parameters": "{n_frequencies: 32}", "embedding": "moments", "out_dir": tmp_path}
    printed = done(
        "test", "two-sample", CONFIGS / "test-two-sample.yaml", *settings(**wanted, **more)
    )
    report = json.loads((tmp_path / "report.json").read_text())
    expected = two_sample_test(
        (store, 0, 30), (store, 30, 50), statistic=FourierMMD(32), embedding=MomentsEmbedding()
    )
    assert report["statistic"] == pytest.approx(expected.statistic)
    assert report["p_value"] == expected.p_value == 0.001
    assert report["n_units"] == {"a": 30, "b": 20}
    assert "fourier(n_frequencies=32)" in printed.replace("\n", "")
    assert_picture(tmp_path / "null.png")
    done("test", "two-sample", *settings(**wanted, groups="day", null_law="null", out_dir=tmp_path))
    report = json.loads((tmp_path / "report.json").read_text())
    assert (report["unit"], report["n_units"]) == ("group", {"a": 6, "b": 4})


@pytest.mark.parametrize(
    ("change", "code", "told"),
    [
        ({"statistic": "mmd"}, 2, "statistic is 'mmd'; expected one of"),
        ({"parameters": "{L: 3}"}, 2, "'fourier' has no parameter 'L'; it has"),
        ({"null_law": "normal"}, 2, "the statistic 'fourier' admits"),
        ({"groups": "week"}, 1, "has the targets ['day'], and no 'week'"),
        ({"b_bags": "[30, 60]"}, 1, "bags 30:60 of 50 do not exist"),
    ],
)
def test_refusals(store, tmp_path, change, code, told):
    """One line, of what the library says."""
    given = {"statistic": "fourier", "a_url": store.url, "out_dir": tmp_path, **change}
    assert told in refused(code, "test", "two-sample", *settings(**given))


def test_independence(store, tmp_path):
    """As the function finds it: the bags of a store depend on the day."""
    wanted = {"data_url": store.url, "target": "day", "out_dir": tmp_path}
    more = {"parameters": "{n_locations: 3}", "statistic": "nfsic"}
    printed = done(
        "test", "independence", CONFIGS / "test-independence.yaml", *settings(**wanted, **more)
    )
    report = json.loads((tmp_path / "report.json").read_text())
    expected = independence_test(store, "day", statistic=NFSIC(n_locations=3))
    assert report["statistic"] == pytest.approx(expected.statistic)
    assert report["n_units"] == {"pairs": 50}
    assert "independence" in printed.lower()
    assert_picture(tmp_path / "null.png")
    done("test", "independence", *settings(**wanted, groups="day", bags="[0, 40]"))
    report = json.loads((tmp_path / "report.json").read_text())
    assert (report["unit"], report["n_units"]) == ("group", {"pairs": 8})


def test_fit(store, tmp_path):
    """As the function finds it: the days are not normal, and not two normals in one."""
    wanted = {"data_url": store.url, "targets": "[day]", "out_dir": tmp_path}
    mixture = {"means": "[[2.0], [7.0]]", "covariances": 2.0}
    done("test", "fit", CONFIGS / "test-fit.yaml", *settings(**wanted, **mixture))
    report = json.loads((tmp_path / "report.json").read_text())
    days = store.targets(0, 50, ("day",))
    expected = fit_test(days, MixtureScore([[2.0], [7.0]], 2.0))
    assert report["statistic"] == pytest.approx(expected.statistic)
    assert report["p_value"] == expected.p_value
    assert_picture(tmp_path / "null.png")
    done("test", "fit", *settings(**wanted, statistic="fssd"))
    assert json.loads((tmp_path / "report.json").read_text())["p_value"] == 0.001
