"""Every registered embedding through every job, and every shape through some: joint and
marginal, in 1, 2 and 4 dimensions."""

from __future__ import annotations

import inspect
import json

import numpy as np
import pandas as pd
import pytest
import yaml

from bagbasis import BagStore, load_model
from bagbasis.embeddings import EMBEDDINGS
from tests.jobs.running import assert_picture, done, settings
from tests.oracles.labelled import labelled_bags, stored

SMALL = {  # an embedding that is not here has to be small by default
    "projection": {"n_per_dim": 3},
    "hdd": {"n_per_dim": 3, "bandwidth": 0.2},
    "mean_map": {"n_features": 8},
    "histogram": {"n_bins": 3},
    "bag_of_words": {"n_words": 4},
    "coefficient_pca": {"n_components": 3, "embedding": {"name": "projection", "n_per_dim": 3}},
    "point_transformer": {
        "transformer": ["StandardScaler", {"name": "PCA", "n_components": 1}],
        "embedding": {"name": "projection", "n_per_dim": 3},
    },
    "union": {
        "join": "sum",
        "parts": [{"name": "hdd", "n_per_dim": 3, "bandwidth": 0.2}, "moments"],
    },
}
SERIES = {
    "projection",
    "hdd",
    "union",
    "coefficient_pca",
    "shrunk",
}  # with a series estimate of the density, which is drawn
OUT_OF_REACH = {("hdd", None, 4)}  # refused: density estimates go to three dimensions
# a plain one, and those that bags decide: what is not of an embedding is alike
DECIDED = {"projection", "coefficient_pca", "shrunk", "bag_of_words", "point_transformer", "union"}
N_BAGS, N_NEW = 100, 20


def has_marginals(name):
    return "marginals" in inspect.signature(EMBEDDINGS[name]).parameters


JOINT = [(name, None, d) for name in sorted(EMBEDDINGS) for d in (1, 2, 4)]
MARGINAL = [
    (name, size, d)
    for name in sorted(EMBEDDINGS)
    for size, d in ((1, 2), (1, 4), (2, 4))
    if has_marginals(name)
]
CASES = [case for case in JOINT + MARGINAL if case not in OUT_OF_REACH]
WHOLE = [case for case in CASES if case[1:] in ((None, 2), (2, 4))]


def pairs(cases):
    """Return enough cases that every embedding and every shape is there."""
    few = []
    for i, name in enumerate(sorted({name for name, *_ in cases})):
        own = [case for case in cases if case[0] == name]
        few.append(own[i % len(own)])
    for case in cases:
        if case[1:] not in {item[1:] for item in few}:
            few.append(case)
    return few


@pytest.fixture(autouse=True)
def _coarse_pictures(monkeypatch):
    """Fewer pixels, put anywhere: drawing is most of what these tests would wait for."""
    monkeypatch.setattr("bagbasis.jobs.pictures.evaluation.DOTS_PER_INCH", 60)
    monkeypatch.setattr("bagbasis.jobs.pictures.evaluation.LAYOUT", None)


def make_store(folder, n_dims):
    bags, y = labelled_bags(N_BAGS, n_dims, most=20)
    return stored(folder / "bags.zarr", bags, y)


def section_of(name, marginals):
    """An embedding section of a config."""
    section = {"name": name, **SMALL.get(name, {})}
    return section | ({} if marginals is None else {"marginals": marginals})


def model_settings(name, marginals, second="fourier"):
    """``--set`` of the model of a job."""
    section = yaml.safe_dump(section_of(name, marginals), default_flow_style=True).strip()
    features = f"{{name: {second}, n_features: 16}}"
    return settings(model__embedding=section, model__random_features=features)


def fit(folder, case):
    """`bags fit` with a holdout; the store and the model."""
    name, marginals, n_dims = case
    store = make_store(folder, n_dims)
    urls = settings(data_url=store.url, model_url=folder / "model.zarr", holdout=0.3)
    done("fit", *urls, *model_settings(name, marginals))
    return store, load_model(folder / "model.zarr")


@pytest.mark.long
@pytest.mark.parametrize("case", pairs(CASES))
def test_fit_evaluate_predict_and_info(case, tmp_path):
    """The report has the model's errors and a picture of each kind there is, predictions are the
    loaded model's, and info names the embedding."""
    name, _, n_dims = case
    store, model = fit(tmp_path, case)
    bags, y = store.read(), store.targets()[:, 0]
    urls = settings(data_url=store.url, model_url=tmp_path / "model.zarr")

    if name in SERIES | {"moments"}:  # what is drawn of the others is alike
        done("evaluate", *urls, *settings(out_dir=tmp_path / "out", subset="all", n_pictured=1))
        report = json.loads((tmp_path / "out" / "report.json").read_text())
        error = np.sqrt(np.mean((model.predict(bags) - y) ** 2))
        assert report["targets"]["y"]["rmse"] == pytest.approx(error, rel=1e-5)
        drawn = {"predictions.png", "residuals.png"}
        drawn |= {"densities.png"} if name in SERIES else set()
        assert {path.rsplit("/", 1)[1] for path in report["pictures"]} == drawn
        for picture in drawn:
            assert_picture(tmp_path / "out" / picture)

    places = settings(output_url=tmp_path / "y.parquet", report=tmp_path / "predict.json")
    done("predict", *urls, *places)
    predicted = pd.read_parquet(tmp_path / "y.parquet")["y"].to_numpy()
    np.testing.assert_allclose(predicted, model.predict(bags), rtol=1e-5, atol=1e-6)

    done("info", tmp_path / "model.zarr", *settings(report=tmp_path / "info.json"))
    known = json.loads((tmp_path / "info.json").read_text())
    spec = model.features_.embedding
    assert known["embedding"] == json.loads(json.dumps(spec.to_dict()))
    assert (known["n_dims"], known["n_coefficients"]) == (n_dims, spec.n_features)
    assert spec.describe().text
    assert (spec.describe().series is not None) == (name in SERIES)


LANDMARKS = (("projection", None, 2), "nystroem")  # the other random features
FEW_WHOLE = [case for case in pairs(WHOLE) if case[0] in DECIDED]


@pytest.mark.long
@pytest.mark.parametrize(
    ("case", "second"), [*((case, "fourier") for case in FEW_WHOLE), LANDMARKS]
)
def test_tune(case, second, tmp_path):
    """Tuning finds a scale, its best.yaml fits."""
    name, marginals, n_dims = case
    store = make_store(tmp_path, n_dims)
    model = model_settings(name, marginals, second)
    section = yaml.safe_dump(section_of(name, marginals), default_flow_style=True).strip()
    search = settings(
        search__embedding=section, search__random_features__scale_multiplier="[0.5, 2]"
    )
    urls = settings(
        data_url=store.url, model_url=tmp_path / "tuned.zarr", out_dir=tmp_path / "tune"
    )
    done("tune", *urls, *model, *search)
    best = load_model(tmp_path / "tuned.zarr")
    assert type(best.features_.embedding) is EMBEDDINGS[name].spec_kind
    again = settings(data_url=store.url, model_url=tmp_path / "again.zarr")
    done("fit", tmp_path / "tune" / "best.yaml", *again)
    assert load_model(tmp_path / "again.zarr").features_ == best.features_


@pytest.mark.long
@pytest.mark.parametrize(
    ("case", "second"),
    [*((case, "fourier") for case in FEW_WHOLE if case[0] != "union"), LANDMARKS],
)
def test_retrain(case, second, tmp_path):
    """Retraining follows the store as it grows."""
    name, marginals, n_dims = case
    store, model = make_store(tmp_path, n_dims), model_settings(name, marginals, second)
    places = settings(
        data_url=store.url,
        registry_url=tmp_path / "registry",
        out_dir=tmp_path / "rounds",
        target="y",
        evaluate_bags=20,
        drift__n_bags=15,
        drift__n_permutations=19,
        tolerance=10,
    )
    assert "Round 1" in done("retrain", *places, *model)
    bags, y = labelled_bags(N_NEW, n_dims, seed=1, most=20)
    BagStore.open(store.url).append(bags, y)
    assert "Round 2: promoted" in done("retrain", *places, *model)
