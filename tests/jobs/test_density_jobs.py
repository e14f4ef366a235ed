"""Distribution to distribution regression through the command line."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
import zarr

from bagbasis import BagStore, TripleBasisRegressor, evaluate, load_model
from tests.jobs.running import CONFIGS, assert_picture, done, refused, settings
from tests.shown import rounded

MODEL = {
    "model__task": "densities",
    "model__response_embedding": "{max_norm: 6}",
    "model__random_features__n_features": 64,
    "target": "null",
}


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """A generated store with responses, and a model of three quarters of it."""
    where = tmp_path_factory.mktemp("densities")
    params = {"params__n_points": 40, "params__n_response_points": 30}
    done("generate", "density_mapping", *settings(url=where / "bags.zarr", n_bags=240, **params))
    urls = settings(data_url=where / "bags.zarr", model_url=where / "model.zarr")
    done("fit", CONFIGS / "fit.yaml", *urls, *settings(holdout=0.25, report="null", **MODEL))
    return where


@pytest.mark.long
def test_fit_and_evaluate(fitted, tmp_path):
    """The report has the errors of the model, the average, the bag itself and the smoother, as
    the model's own score has them, and the picture is there."""
    urls = settings(data_url=fitted / "bags.zarr", model_url=fitted / "model.zarr")
    options = settings(out_dir=tmp_path, subset="holdout", n_smoothed=20)
    printed = done("evaluate", *urls, *options)
    report = json.loads((tmp_path / "report.json").read_text())
    errors = report["densities"]
    model, store = load_model(fitted / "model.zarr"), BagStore.open(fitted / "bags.zarr")
    assert isinstance(model, TripleBasisRegressor)
    assert report["n_bags"] == model.report_["n_bags_held_out"]
    assert 0 < errors["noise_mse"] < errors["mse"] < errors["input_mse"] < errors["average_mse"]
    assert errors["smoother"]["n"] == 20
    assert 0 < errors["smoother"]["mse"] < errors["average_mse"]
    assert rounded(errors["mse"]) in printed
    assert_picture(tmp_path / "densities.png")
    done("evaluate", *urls, *settings(out_dir=tmp_path / "all", subset="all"))
    whole = json.loads((tmp_path / "all/report.json").read_text())["densities"]
    assert whole["r2"] == pytest.approx(evaluate(model, store, subset="all").score, rel=1e-9)
    assert errors["r2"] == pytest.approx(model.score(store), rel=1e-9)
    assert "smoother" not in whole


@pytest.mark.long
def test_tune_leaves_a_model_that_fit_makes_again(fitted, tmp_path):
    """The report has every candidate and its L2 error over the variance, the response basis is
    one for all, and bags fit makes the same model of best.yaml."""
    urls = settings(data_url=fitted / "bags.zarr", model_url=tmp_path / "tuned.zarr")
    search = settings(
        search__embedding="{max_norm: [1, 5]}",
        search__random_features__scale_multiplier="[0.5, 1]",
        model__validation_fraction=0.3,
        holdout=0.1,
        out_dir=tmp_path,
        **MODEL,
    )
    printed = done("tune", CONFIGS / "tune.yaml", *urls, *search)
    report = json.loads((tmp_path / "report.json").read_text())
    assert len(report["candidates"]) == 4
    errors = [candidate["error"] for candidate in report["candidates"]]
    assert 0 < min(errors) == report["winner"]["error"] < max(errors) < 1
    assert "max_norm 5" in report["winner"]["name"]
    assert report["winner"]["name"] in printed
    assert report["targets"] == []
    assert_picture(tmp_path / "tune.png")
    done("fit", tmp_path / "best.yaml", *settings(model_url=tmp_path / "again.zarr"))
    tuned, again = load_model(tmp_path / "tuned.zarr"), load_model(tmp_path / "again.zarr")
    assert isinstance(tuned, TripleBasisRegressor)
    assert (
        tuned.response_spec_
        == again.response_spec_
        == load_model(fitted / "model.zarr").response_spec_
    )
    assert tuned.features_ == again.features_
    assert tuned.holdout_ == again.holdout_ == 0.1
    np.testing.assert_array_equal(tuned.coef_, again.coef_)


@pytest.mark.long
@pytest.mark.parametrize("format", ["parquet", "zarr"])
def test_predict_writes_coefficients(fitted, tmp_path, format):
    """Coefficients with the bags' ids, a column an index, and what basis they belong to."""
    urls = settings(data_url=fitted / "bags.zarr", model_url=fitted / "model.zarr")
    done("predict", *urls, *settings(output_url=tmp_path / "p", format=format))
    model, store = load_model(fitted / "model.zarr"), BagStore.open(fitted / "bags.zarr")
    truth = model.predict(store.read())
    if format == "parquet":
        frame = pd.read_parquet(tmp_path / "p").sort_values("id")
        assert list(frame.columns[:3]) == ["id", "a_0_0", "a_0_1"]
        written = frame.drop(columns="id").to_numpy()
    else:
        group = zarr.open_group(tmp_path / "p", mode="r")
        assert group.attrs["response"] == model.response_spec_.to_dict() | {
            "box": [list(pair) for pair in model.response_spec_.to_dict()["box"]]
        }
        written = np.asarray(group["predictions"])
    np.testing.assert_allclose(written, truth, atol=1e-5)


def test_refusals(fitted, tmp_path):
    """Wrong configs and stores without responses: one line that says what to do."""
    urls = settings(data_url=fitted / "bags.zarr", model_url=tmp_path / "m.zarr")
    fit = ["fit", CONFIGS / "fit.yaml", *urls]
    line = refused(2, *fit, *settings(**{**MODEL, "target": "k"}))
    assert "key 'target' is not used with task: densities" in line
    line = refused(2, *fit, *settings(**{**MODEL, "model__task": "regression"}))
    assert "response_embedding is used with task: densities alone" in line
    tune = ["tune", CONFIGS / "tune.yaml", *urls, *settings(out_dir=tmp_path / "t", **MODEL)]
    line = refused(2, *tune, *settings(target="k"))
    assert "key 'target' is not used with task: densities" in line
    plain = tmp_path / "plain.zarr"
    done("generate", "digits", *settings(url=plain))
    line = refused(1, "fit", *settings(data_url=plain, model_url=tmp_path / "m.zarr", **MODEL))
    assert "holds no responses" in line
    assert "holds no responses" in refused(1, *tune, *settings(data_url=plain))
    assert not (tmp_path / "t").exists()
    urls = settings(data_url=plain, model_url=fitted / "model.zarr", out_dir=tmp_path / "e")
    assert "dimension" in refused(1, "evaluate", *urls)
    urls = settings(data_url=fitted / "bags.zarr", model_url=fitted / "model.zarr")
    line = refused(2, "evaluate", *urls, *settings(out_dir=tmp_path, coordinate_names="[x]"))
    assert "1 names; the responses" in line
    assert not (tmp_path / "m.zarr").exists()
