"""``model.head`` by the commands: fitted, judged, predicted, registered and served, or refused."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from bagbasis import BagStore, evaluate, load_model
from bagbasis.jobs.commands.serving.champion_app import Champion
from bagbasis.operations import Registry
from tests.jobs.running import done, refused, settings
from tests.jobs.serving import answer_request

SMALL = settings(model__embedding="moments", model__random_features__n_features=32)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """120 bags whose labels are a step of their largest point."""
    rng = np.random.default_rng(0)
    tops = rng.uniform(0.3, 1.0, 120)
    made = BagStore.create(tmp_path_factory.mktemp("steps") / "s.zarr", 2, target_names=["y"])
    points = [rng.uniform(0, top, (8, 2)) for top in tops]
    return made.append(points, targets={"y": np.floor(6 * tops)})


@pytest.fixture(scope="module")
def place(store, tmp_path_factory):
    """A folder with a model of ridge and trees, and what the fit reported of it."""
    folder = tmp_path_factory.mktemp("heads")
    out = settings(model_url=folder / "m.zarr", report=folder / "fit.json", holdout=0.3)
    done("fit", *settings(data_url=store.url, model__head="stack"), *out, *SMALL)
    return folder


@pytest.mark.long
def test_fit_evaluate_and_predict(store, place, tmp_path):
    """The model of the config has trees; each command predicts by both."""
    model, report = load_model(place / "m.zarr"), json.loads((place / "fit.json").read_text())
    assert model.head == "stack"
    assert report["head"] == model.report_["head"]
    assert report["judged"]["error"] == evaluate(model, store).error
    urls = settings(data_url=store.url, model_url=place / "m.zarr")
    done("evaluate", *urls, *settings(out_dir=tmp_path, importance="true"))
    evaluated = json.loads((tmp_path / "report.json").read_text())
    assert evaluated["targets"]["y"]["rmse"] == evaluate(model, store).error
    assert len(model.calibration_.errors) == evaluated["n_bags"]
    out = settings(output_url=tmp_path / "p.parquet", report=tmp_path / "p.json")
    done("predict", *urls, *out, *settings(columns="[lower, upper]"))
    table, bags = pd.read_parquet(tmp_path / "p.parquet"), store.read(0, store.n_bags)
    np.testing.assert_allclose(table["y"], model.predict(bags), rtol=1e-12)
    lower, upper = model.predict_interval(bags)
    np.testing.assert_allclose(table[["lower", "upper"]].T, [lower, upper], rtol=1e-12)


@pytest.mark.long
def test_registered_and_served(store, place, tmp_path):
    """A champion that has trees answers, and a copy of it has the same name."""
    registry, model = Registry(tmp_path / "registry"), load_model(place / "m.zarr")
    name = registry.register(model)
    registry.promote(name)
    assert registry.register(registry.load_current()) == name
    bags = [bag.tolist() for bag in store.read(0, 5)]
    result = answer_request(Champion(registry).served, json.dumps({"bags": bags}).encode())
    assert result["model"] == name
    assert result["predictions"] == pytest.approx(model.predict(store.read(0, 5)).tolist())


@pytest.mark.parametrize(
    ("job", "changes", "message"),
    [
        ("retrain", {"registry_url": "r"}, "rounds go on from sums, which trees have not"),
        ("fit", {"model__uncertainty": "true"}, "uncertainty=True is of a ridge"),
        ("fit", {"interval_folds": 5}, "'interval_folds' makes folds of a ridge alone"),
        (
            "fit",
            {"model__task": "densities"},
            "head: trees is used with task: regression or classification alone",
        ),
        ("fit", {"model__head": "forest"}, "key 'model.head' is 'forest'"),
        ("tune", {"search__heads": "[forest]"}, "key 'search.heads' is 'forest'; expected"),
        ("tune", {"search__heads": "[]"}, "key 'search.heads'"),
    ],
)
def test_refused_before_a_pass(store, tmp_path, job, changes, message):
    """In one line, with what to do; nothing is left behind."""
    arguments = {"data_url": store.url, "model__head": "trees", **changes}
    places = {"retrain": ("registry_url", "out_dir"), "tune": ("model_url", "out_dir")}
    urls = {key: tmp_path / key for key in places.get(job, ("model_url",))}
    assert message in refused(2, job, *settings(**{**arguments, **urls}))
    assert not list(tmp_path.iterdir())
