"""Models that are logged into MLflow, in a folder, and loaded by another process."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from bagbasis import (
    DoubleBasisClassifier,
    DoubleBasisRegressor,
    ModelError,
    ParameterError,
    ProjectionEmbedding,
)
from bagbasis.neural import DeepSetsClassifier, SequenceRegressor, TANDensity
from bagbasis.operations import log_model
from tests.networks import compiled_soon

RNG = np.random.default_rng(0)
SPREAD = RNG.uniform(0.1, 0.4, 40)
BAGS = [RNG.normal(0.5, spread, (RNG.integers(5, 20), 2)).clip(0, 1) for spread in SPREAD]
LABELS = {
    DoubleBasisRegressor: SPREAD,
    DoubleBasisClassifier: np.where(SPREAD > 0.25, "wide", "narrow"),
}
LOADED = """
import json, sys
import mlflow
import pandas as pd
asked = json.load(sys.stdin)
for uri in asked["uris"]:
    model = mlflow.pyfunc.load_model(uri)
    of_list = model.predict(asked["bags"]).tolist()
    assert model.predict(pd.DataFrame({"bag": asked["bags"]})).tolist() == of_list
    print(json.dumps(of_list))
"""


@pytest.fixture(scope="module")
def mlflow():
    """The package, whose import takes a second of CPU: not while tests are collected."""
    import mlflow

    mlflow.end_run()  # that tests before may have begun
    return mlflow


@pytest.fixture(autouse=True)
def _no_run(mlflow):
    """MLflow begins a run where none is active, and leaves it so."""
    mlflow.end_run()
    yield
    mlflow.end_run()


@pytest.fixture(scope="module")
def models():
    embedding = ProjectionEmbedding(n_per_dim=3)
    return [kind(embedding, alpha="gcv").fit(BAGS, y) for kind, y in LABELS.items()]


@pytest.fixture(scope="module", autouse=True)
def _networks_are_compiled_soon():
    """Here and in the process that loads them: their predictions are compared."""
    with compiled_soon():
        yield


@pytest.fixture(scope="module")
def networks():
    arguments = {"n_steps": 2, "validate_every": 1, "batch_size": 8}
    regressor = SequenceRegressor(n_units=4, n_stats=3, n_recurrent=2, **arguments)
    classifier = DeepSetsClassifier(n_hidden=4, n_pooled=3, **arguments)
    labels = LABELS[DoubleBasisRegressor], LABELS[DoubleBasisClassifier]
    return [model.fit(BAGS, y) for model, y in zip((regressor, classifier), labels, strict=True)]


@pytest.fixture(scope="module")
def logged(mlflow, models, networks):
    """The runs and URIs of all models, and what another process that loads them predicts."""
    runs, uris = [], []
    for model in (*models, *networks):
        with mlflow.start_run() as run:
            runs.append(run.info.run_id)
            uris.append(log_model(model).model_uri)
    mlflow.register_model(uris[0], "spread")
    asked = {"uris": [*uris, "models:/spread/1"], "bags": [bag.tolist() for bag in BAGS]}
    printed = subprocess.run(
        [sys.executable, "-c", LOADED],
        env={**os.environ, "JAX_DISABLE_MOST_OPTIMIZATIONS": "1"},
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return runs, uris, [json.loads(line) for line in printed.splitlines()]


@pytest.mark.long
def test_another_process_loads_what_was_logged(mlflow, models, logged):
    """The predictions are the same; the run has parameters and numbers of the report."""
    runs, _, predictions = logged
    data = mlflow.get_run(runs[0]).data
    assert data.params["embedding__n_per_dim"] == "3"
    assert data.metrics["alpha"] == models[0].alpha_
    assert data.metrics["n_bags_fitted"] == len(BAGS)
    expected = [models[i].predict(BAGS).tolist() for i in (0, 1, 0)]
    assert [predictions[i] for i in (0, 1, 4)] == expected


@pytest.mark.long
def test_networks_are_logged_and_loaded(mlflow, networks, logged):
    """By another process, with the same predictions; the model asks for both extras."""
    runs, uris, predictions = logged
    regressor, classifier = networks
    data = mlflow.get_run(runs[2]).data
    assert data.params["n_units"] == "4"
    assert data.metrics["loss"] == regressor.loss_
    with open(mlflow.pyfunc.get_model_dependencies(uris[2])) as file:
        assert "bagbasis[mlflow,neural]==" in file.read()
    np.testing.assert_allclose(predictions[2], regressor.predict(BAGS), rtol=1e-6)
    assert predictions[3] == classifier.predict(BAGS).tolist()


@pytest.mark.long
def test_networks_of_densities_are_refused():
    """They predict no number or class of a bag."""
    with pytest.raises(ParameterError, match="SequenceRegressor"):
        log_model(TANDensity())


@pytest.mark.long
def test_what_can_not_be_logged_is_a_model_error(mlflow, models, monkeypatch):
    with pytest.raises(ModelError, match="not fitted; call fit before logging it"):
        log_model(DoubleBasisRegressor())
    with pytest.raises(ModelError, match=r"MLflow did not take the model \(.*name"):
        log_model(models[0], "a/b:c")
    mlflow.end_run()
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "nowhere://at-all")
    with pytest.raises(ModelError, match="nowhere"):
        log_model(models[0])
