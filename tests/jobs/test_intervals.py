"""Intervals from folds for people who write configs: fitted, judged, told and predicted."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from bagbasis import BagStore, load_model
from tests.jobs.pages import Page
from tests.jobs.running import done, refused, settings


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    rng = np.random.default_rng(0)
    url = tmp_path_factory.mktemp("days") / "s.zarr"
    made = BagStore.create(url, 2, target_names=["y", "day"])
    points = [rng.random((8, 2)) for _ in range(120)]
    labels = {"y": [bag[:, 0].mean() for bag in points], "day": np.arange(120) // 4}
    return made.append(points, targets=labels)


def fitted(store, tmp_path, *more, **arguments):
    urls = settings(data_url=store.url, model_url=tmp_path / "m.zarr", report=tmp_path / "f.json")
    of_model = settings(model__embedding="moments", model__random_features__n_features=32)
    text = done("fit", "-v", *urls, *of_model, *settings(target="y", overwrite="true", **arguments))
    return " ".join(text.split()), json.loads((tmp_path / "f.json").read_text())


@pytest.mark.long
def test_with_a_holdout(store, tmp_path):
    """The bags held out tell how many labels lie within; groups of the holdout stay whole."""
    holdout = "{fraction: 0.3, groups: day}"
    text, report = fitted(store, tmp_path, holdout=holdout, interval_folds=5)
    model = load_model(tmp_path / "m.zarr")
    n_groups = report["n_bags_fitted"] / 4
    assert len(model.calibration_.errors) == n_groups
    assert [item["coverage"] for item in report["intervals"]] == [0.5, 0.8, 0.9, 0.95]
    assert {item["n"] for item in report["intervals"]} == {report["n_bags_held_out"]}
    message = f"the errors of {n_groups:.0f} bags over 5 folds (CV+)"
    title = f"Prediction intervals, calibrated with {message}"
    assert title in text
    texts = Page(tmp_path / "f.html").texts
    assert {title, "measured coverage", "mean width"} <= set(texts)
    out = settings(out_dir=tmp_path / "evaluate")
    done("evaluate", *settings(data_url=store.url, model_url=tmp_path / "m.zarr"), *out)
    evaluated = json.loads((tmp_path / "evaluate" / "report.json").read_text())
    assert evaluated["intervals"] == report["intervals"]
    assert title in Page(tmp_path / "evaluate" / "report.html").texts


@pytest.mark.long
def test_without_a_holdout(store, tmp_path):
    """No bag is lost: how many labels lie within is then not known, and said so."""
    text, report = fitted(store, tmp_path, holdout=0, interval_folds=10)
    assert (report["intervals"], report["n_bags_fitted"]) == ([], 120)
    assert (
        "Prediction intervals, calibrated with the errors of 120 bags over 10 folds (CV+)" in text
    )
    assert any("was not measured" in item for item in Page(tmp_path / "f.html").texts)
    urls = settings(data_url=store.url, model_url=tmp_path / "m.zarr")
    out = settings(output_url=tmp_path / "p.csv", columns="[lower, upper]")
    done("predict", *urls, *out)
    table = pd.read_csv(tmp_path / "p.csv")
    low, high = load_model(tmp_path / "m.zarr").predict_interval(store.read(0, 120))
    np.testing.assert_allclose(table["lower"], low)
    np.testing.assert_allclose(table["upper"], high)


def test_refusals(store, tmp_path):
    """Classes have none; too many folds."""
    urls = settings(data_url=store.url, model_url=tmp_path / "m.zarr", target="day")
    of_densities = settings(model__task="densities", interval_folds=5)
    assert "'interval_folds' is not used with task: de" in refused(2, "fit", *urls, *of_densities)
    assert "interval_folds" in refused(2, "fit", *urls, *settings(interval_folds=101))
