"""Every job on small data, through the command line."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import pytest
import zarr
from flowio import create_fcs
from sklearn.metrics import accuracy_score, r2_score, root_mean_squared_error

from bagbasis import BagStore, load_model
from tests.data.store.six_bags import edit_attributes
from tests.jobs.running import CONFIGS, assert_picture, done, refused, settings
from tests.shown import rounded


@pytest.mark.long
def test_default_configs_work_in_sequence(tmp_path, monkeypatch):
    """generate, info, verify, fit, evaluate and predict run as configs/ has them, only smaller."""
    monkeypatch.chdir(tmp_path)
    small = {
        "generate": settings(n_bags=300, params__n_points=30),
        "fit": settings(
            model__embedding="projection",
            model__random_features__n_features=64,
            holdout=0.1,
            report="example-output/fit.json",
        ),
    }
    for job in ("generate", "info", "verify", "fit", "evaluate", "predict"):
        done(job, CONFIGS / f"{job}.yaml", *small.get(job, []))
    remaining = {path.name for path in Path("example-output").iterdir()}
    assert remaining == {
        "bags.zarr",
        "model.zarr",
        "report",
        "predictions.parquet",
        "fit.html",
        "fit.json",
    }
    fit = json.loads(Path("example-output/fit.json").read_text())
    assert fit["job"] == "fit"
    assert fit["n_bags"] == 300 == fit["n_bags_fitted"] + fit["n_bags_held_out"]
    assert fit["config"]["model"]["random_features"]["n_features"] == 64
    evaluation = json.loads(Path("example-output/report/report.json").read_text())
    assert evaluation["n_bags"] == fit["n_bags_held_out"]
    assert all(Path(path).is_file() for path in evaluation["pictures"])


@pytest.mark.long
def test_evaluate_regression_reports_what_scikit_learn_computes(regression, tmp_path):
    """The report's errors are those of the held-out bags, and the pictures are there."""
    store, model = BagStore.open(regression / "bags.zarr"), load_model(regression / "model.zarr")
    urls = settings(data_url=store.url, model_url=regression / "model.zarr")
    printed = done("evaluate", *urls, *settings(out_dir=tmp_path, subset="all"))
    report = json.loads((tmp_path / "report.json").read_text())
    errors = report["targets"]["n_components"]
    true, predicted = store.targets()[:, 0], model.predict(store.read())
    assert errors["n"] == 300
    assert errors["rmse"] == pytest.approx(root_mean_squared_error(true, predicted), rel=1e-6)
    assert errors["r2"] == pytest.approx(r2_score(true, predicted), rel=1e-6)
    assert errors["constant_rmse"] == pytest.approx(true.std())
    assert f"{errors['rmse']:.4g}" in printed
    for name in ("predictions.png", "residuals.png", "densities.png"):
        assert str(tmp_path / name) in report["pictures"]
        assert_picture(tmp_path / name)


@pytest.mark.long
def test_evaluate_classification_reports_confusion(classification, tmp_path):
    """Accuracy, per-class numbers and the confusion matrix agree with each other and the model."""
    store = BagStore.open(classification / "bags.zarr")
    urls = settings(data_url=store.url, model_url=classification / "model.zarr")
    printed = done("evaluate", *urls, *settings(out_dir=tmp_path))
    report = json.loads((tmp_path / "report.json").read_text())
    errors = report["targets"]["digit"]
    predicted = load_model(classification / "model.zarr").predict(store.read())
    truth = np.array(store.meta.class_names["digit"])[store.targets()[:, 0].astype(int)]
    assert errors["accuracy"] == pytest.approx(accuracy_score(truth, predicted))
    assert np.trace(errors["confusion"]) / 540 == pytest.approx(errors["accuracy"])
    assert list(errors["per_class"]) == list("0123456789")
    assert rounded(errors["accuracy"], (predicted == truth).std() / 540**0.5) in printed
    assert "log loss" in printed
    for name in ("confusion.png", "densities.png"):
        assert_picture(tmp_path / name)


@pytest.mark.long
def test_unlabelled_bags_are_left_out_and_counted(regression, tmp_path):
    """A bag without a label is no error of evaluate, and no bag of its score."""
    source = BagStore.open(regression / "bags.zarr")
    targets = source.targets()[::-1, 0].copy()  # of bags in another order, which are no copy
    targets[:7] = np.nan
    store = BagStore.create(
        tmp_path / "some.zarr", 2, target_names=["n_components"], box=source.box
    )
    store.append(source.read()[::-1], {"n_components": targets})
    urls = settings(data_url=store.url, model_url=regression / "model.zarr")
    done("evaluate", *urls, *settings(out_dir=tmp_path / "out"))
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert (report["n_bags"], report["n_unlabelled"]) == (293, 7)
    unlabelled = BagStore.create(
        tmp_path / "none.zarr", 2, target_names=["n_components"], box=source.box
    )
    unlabelled.append(source.read(0, 5))
    urls = settings(data_url=unlabelled.url, model_url=regression / "model.zarr")
    line = refused(1, "evaluate", *urls, *settings(out_dir=tmp_path / "none"))
    assert "no labelled bag" in line
    assert not (tmp_path / "none").exists()


@pytest.mark.long
def test_info_describes_stores_and_models(regression, classification, tmp_path):
    """bags info URL tells a store from a model and says what is in it."""
    printed = done("info", regression / "bags.zarr")
    assert "n_components 300" in printed
    assert "min 40" in printed
    report = tmp_path / "info.json"
    printed = done("info", classification / "model.zarr", *settings(report=report))
    assert "DoubleBasisClassifier" in printed
    values = json.loads(report.read_text())
    assert (values["n_features"], values["n_coefficients"], values["n_dims"]) == (64, 64, 3)
    assert values["classes"] == list("0123456789")
    shutil.copytree(regression / "bags.zarr", tmp_path / "bad.zarr")
    names = ["n_components", "one too many"]
    edit_attributes(BagStore.open(tmp_path / "bad.zarr"), lambda a: a.update(target_names=names))
    assert "bad.zarr: array 'targets' has rows of shape" in refused(
        1, "info", tmp_path / "bad.zarr"
    )
    line = refused(1, "info", tmp_path)
    assert "not a bag store" in line
    assert "not a saved model" in line


def test_verify_names_the_damaged_array(regression, tmp_path):
    """bags verify passes a good store and names what is wrong with a damaged one."""
    assert "every invariant holds" in done("verify", regression / "bags.zarr")
    store = BagStore.create(tmp_path / "bad.zarr", 2, target_names=["n_components"])
    store.append(BagStore.open(regression / "bags.zarr").read(0, 10), {"n_components": np.ones(10)})
    targets = zarr.open_array(tmp_path / "bad.zarr", path="targets", mode="r+")
    targets[3] = np.inf
    assert "array 'targets', chunk 0, bag 3" in refused(1, "verify", store.url)


@pytest.mark.long
def test_ingest_npz_then_fit(tmp_path):
    """An .npz file becomes a store that fit takes."""
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 30, 50)
    points, targets = rng.random((sizes.sum(), 2)), rng.random(50)
    np.savez(tmp_path / "bags.npz", points=points, sizes=sizes, targets=targets)
    arguments = settings(points=tmp_path / "bags.npz", url=tmp_path / "bags.zarr", targets="[y]")
    done("ingest", *arguments)
    store = BagStore.open(tmp_path / "bags.zarr")
    assert (store.n_bags, store.target_names) == (50, ("y",))
    np.testing.assert_allclose(store.targets()[:, 0], targets)
    urls = settings(data_url=store.url, model_url=tmp_path / "model.zarr")
    bases = settings(model__embedding="moments", model__random_features__n_features=16)
    done("fit", *urls, *bases, *settings(model__alpha="1e-2"))
    assert load_model(tmp_path / "model.zarr").alpha_ == 0.01
    line = refused(2, "ingest", *arguments, *settings(id_column="bag"))
    assert "'id_column' is for tables" in line


@pytest.mark.long
def test_ingest_tables_on_local_workers(tmp_path):
    """A CSV of points and one of labels become a store with classes; --cluster is obeyed."""
    rows = pd.DataFrame({"bag": [7, 5, 7, 5, 9], "x": [0.0, 1, 2, 3, 4], "y": np.arange(5.0)})
    rows.to_csv(tmp_path / "points.csv", index=False)
    labels = pd.DataFrame({"bag": [5, 7], "kind": ["cat", "dog"]})
    labels.to_csv(tmp_path / "labels.csv", index=False)
    arguments = settings(
        points=f"[{tmp_path / 'points.csv'}]",
        target_table=tmp_path / "labels.csv",
        url=tmp_path / "bags.zarr",
        targets="[kind]",
        id_column="bag",
        coordinates="[x, y]",
        report=tmp_path / "report.json",
    )
    done("ingest", CONFIGS / "ingest.yaml", *arguments, "--cluster", "local")
    store = BagStore.open(tmp_path / "bags.zarr")
    assert store.ids().tolist() == [5, 7, 9]
    assert store.meta.class_names == {"kind": ["cat", "dog"]}
    np.testing.assert_array_equal(store.targets()[:, 0], [0, 1, np.nan])
    np.testing.assert_array_equal(store.read()[1], [[0, 0], [2, 2]])
    assert json.loads((tmp_path / "report.json").read_text())["n_bags"] == 3


@pytest.mark.long
def test_ingest_with_responses_then_info_and_verify(tmp_path):
    """A table of responses and an .npz with them; info and verify count them."""
    rows = pd.DataFrame({"bag": [7, 5, 7, 9], "x": [0.0, 1, 2, 3], "y": np.arange(4.0)})
    rows.to_csv(tmp_path / "points.csv", index=False)
    answers = pd.DataFrame({"bag": [9, 5, 9], "z": [0.0, 1.0, 4.0]})
    answers.to_csv(tmp_path / "responses.csv", index=False)
    report = tmp_path / "report.json"
    arguments = settings(
        points=tmp_path / "points.csv",
        id_column="bag",
        coordinates="[x, y]",
        responses=tmp_path / "responses.csv",
        response_coordinates="[z]",
        response_box="[[0, 5]]",
        url=tmp_path / "bags.zarr",
        report=report,
    )
    done("ingest", *arguments)
    assert json.loads(report.read_text())["bags_with_response"] == 2
    store = BagStore.open(tmp_path / "bags.zarr")
    assert store.responses().positions.tolist() == [0, 2]
    done("info", store.url, *settings(report=report))
    values = json.loads(report.read_text())
    assert (values["n_response_dims"], values["n_response_points"]) == (1, 3)
    assert values["points_per_response"] == {
        "mean": 1.5,
        "min": 1,
        "q05": 1,
        "median": 1,
        "q95": 2,
        "max": 2,
    }
    assert values["response_box"] == [[0, 5]]
    done("verify", store.url, *settings(report=report))
    assert json.loads(report.read_text())["n_response_points"] == 3
    offsets = zarr.open_array(store.url, path="responses/offsets", mode="r+")
    offsets[2] = 0
    line = refused(1, "verify", store.url)
    assert "array 'responses/offsets', chunk 0: bag 1 has a response" in line
    np.savez(
        tmp_path / "bags.npz",
        points=np.ones((3, 1)),
        sizes=[1, 2],
        response_points=np.ones((2, 2)),
        response_sizes=[0, 2],
    )
    arguments = settings(points=tmp_path / "bags.npz", url=tmp_path / "npz.zarr")
    done("ingest", *arguments)
    assert BagStore.open(tmp_path / "npz.zarr").responses().positions.tolist() == [1]
    line = refused(2, "ingest", *arguments, *settings(responses="x.csv"))
    assert "'responses' is for tables" in line


def test_nothing_is_replaced_unless_told(regression):
    """fit refuses a model that is there before it reads any data."""
    before = (regression / "model.zarr" / "zarr.json").stat().st_mtime_ns
    urls = settings(data_url="/nowhere", model_url=regression / "model.zarr")
    line = refused(1, "fit", *urls)
    assert "exists already" in line
    assert (regression / "model.zarr" / "zarr.json").stat().st_mtime_ns == before


@pytest.mark.long
def test_ingest_files_that_are_a_bag_each(tmp_path):
    """Slides and samples, by their ending; keys of tables are refused."""
    for i, name in enumerate("ab"):
        with h5py.File(tmp_path / f"{name}.h5", "w") as file:
            file["features"] = np.full((3, 2), i + 1.0)
        with (tmp_path / f"{name}.fcs").open("wb") as file:
            create_fcs(file, np.full(8, i + 1.0).tolist(), ["CD3", "CD4"])
    (tmp_path / "labels.csv").write_text("slide_id,y\na,1\nb,2\n")
    message = settings(points=tmp_path / "*.h5", url=tmp_path / "h.zarr", mode="overwrite")
    done("ingest", *message, *settings(target_table=tmp_path / "labels.csv", targets="[y]"))
    store = BagStore.open(tmp_path / "h.zarr")
    assert (store.ids().tolist(), store.targets()[:, 0].tolist()) == (["a", "b"], [1.0, 2.0])
    message = settings(points=tmp_path / "*.fcs", url=tmp_path / "f.zarr", coordinates="[CD4]")
    done("ingest", *message, *settings(cofactor=5))
    np.testing.assert_allclose(
        BagStore.open(tmp_path / "f.zarr").read()[1], np.arcsinh(np.full((4, 1), 2 / 5)), rtol=1e-6
    )
    for key, value in (("id_column", "bag"), ("missing", "drop_point"), ("cluster", "local")):
        assert f"key {key!r} is for tables" in refused(
            2, "ingest", *message, *settings(**{key: value})
        )
    with (tmp_path / "c.fcs").open("wb") as file:
        create_fcs(file, np.full(8, 3.0).tolist(), ["CD3", "CD4"])
    done("ingest", *message, *settings(cofactor=5, mode="append", known_ids="skip"))
    assert BagStore.open(tmp_path / "f.zarr").ids().tolist() == ["a", "b", "c"]
    message = settings(
        points=tmp_path / "labels.csv", url=tmp_path / "t.zarr", id_column="slide_id"
    )
    line = refused(2, "ingest", *message, *settings(coordinates="[y]", cofactor=5))
    assert "key 'cofactor' is for .fcs files" in line
