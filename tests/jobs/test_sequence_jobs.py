"""``model.kind: sequence``: networks of sequences from a store, by the commands."""

from __future__ import annotations

import importlib
import inspect
import json
import re
import sys
from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
import pytest
import zarr
from pydantic import TypeAdapter

from bagbasis import Bags, BagStore, ModelError, evaluate, load_model, neural
from bagbasis.jobs.commands.serving.champion_app import Champion
from bagbasis.jobs.configs.sequence_section import SequenceSection
from bagbasis.jobs.runs import LAUNCHERS, submit
from bagbasis.jobs.runs.launchers import launch_here
from bagbasis.models import save_model
from bagbasis.neural import SequenceClassifier, SequenceRegressor, load_network
from bagbasis.operations import Registry
from tests.execution import gated
from tests.execution.gated import Gate, until
from tests.jobs.running import done, import_job, refused, settings
from tests.jobs.serving import answer_request
from tests.jobs.test_fit import killed

GUIDE = Path(__file__).parents[2] / "docs" / "guide.md"
SMALL = {"n_units": 6, "n_stats": 5, "n_recurrent": 3, "validate_every": 10, "n_steps": 40}
NETWORK = settings(model__kind="sequence", **{f"model__{k}": v for k, v in SMALL.items()})


@pytest.fixture(scope="module")
def where(tmp_path_factory):
    """A folder with bags.zarr: sequences, a number and a class of their order, and groups."""
    folder = tmp_path_factory.mktemp("sequences")
    rng = np.random.default_rng(0)
    bags = [rng.standard_normal((int(m), 2)) for m in rng.integers(3, 10, 120)]
    y = np.array([bag[-1, 0] - bag[0, 0] for bag in bags])
    store = BagStore.create(
        folder / "bags.zarr", 2, target_names=["y", "way", "day"], box=[(-9, 9)] * 2,
        class_names={"way": ["down", "up"]},
    )  # fmt: skip
    day = np.repeat(np.arange(30.0), 4)
    store.append(Bags.from_list(bags), targets=np.column_stack([y, y > 0, day]))
    return folder


def test_section_has_the_estimators_parameters():
    """With their defaults, and with no other; the checkpoint is the job's."""
    section, signature = SequenceSection(), inspect.signature(SequenceRegressor).parameters
    value = section.model_dump(exclude={"kind", "task"})
    assert set(value) == set(signature) - {"checkpoints"}
    assert {k: tuple(v) if k == "scales" else v for k, v in value.items()} == {
        k: signature[k].default for k in value
    }
    assert isinstance(SequenceSection(task="classification").estimator(None), SequenceClassifier)


@pytest.mark.long
@pytest.mark.usefixtures("with_networks")
def test_numbers(where, tmp_path):
    """Fitted, described, judged against baselines on the bags held out, and predicted."""
    url, data = tmp_path / "m.zarr", settings(data_url=where / "bags.zarr")
    out = settings(model_url=url, holdout=0.3, report=tmp_path / "fit.json")
    shown = done("fit", *data, *out, *NETWORK, *settings(target="y"))
    assert "ridge regression on the bags' means" in shown
    report = json.loads((tmp_path / "fit.json").read_text())
    assert report["n_bags_held_out"] == report["judged"]["n"]
    assert report["n_bags_fitted"] + report["n_bags_held_out"] == 120
    page = (tmp_path / "fit.html").read_text()
    assert "unit &#x27;sru&#x27;" in page or "unit 'sru'" in page or "unit &#39;sru&#39;" in page
    model, store = load_network(url), BagStore.open(where / "bags.zarr")
    assert model.holdout_ == 0.3
    errors = evaluate(model, store)
    assert (errors.subset, errors.error) == ("holdout", report["judged"]["error"])
    assert "SequenceRegressor" in done("info", url)
    done("evaluate", *data, *settings(model_url=url, out_dir=tmp_path / "judged"))
    result = json.loads((tmp_path / "judged" / "report.json").read_text())
    assert result["targets"]["y"]["rmse"] == pytest.approx(errors.error, rel=1e-12)
    done("predict", *data, *settings(model_url=url, output_url=tmp_path / "p.csv"))
    written = pd.read_csv(tmp_path / "p.csv")["y"]
    np.testing.assert_allclose(written, model.predict(store), rtol=1e-5, atol=1e-6)
    with pytest.raises(ModelError, match=r"bagbasis\.neural\.load_network"):
        load_model(url)


@pytest.mark.long
@pytest.mark.usefixtures("with_networks")
def test_classes_and_groups(where, tmp_path):
    """Classes have their names; whole groups are held out, and judge the network in training."""
    store = BagStore.open(where / "bags.zarr")
    model = SequenceClassifier(**{**SMALL, "n_steps": 200}, validation=0.2, learning_rate=0.02)
    model.fit(store, target="way", holdout={"fraction": 0.3, "groups": "day"})
    assert model.classes_.tolist() == ["down", "up"]
    assert model.report_["n_bags_held_out"] % 4 == 0 < model.report_["n_bags_held_out"]
    save_model(model, tmp_path / "m.zarr")
    again = load_network(tmp_path / "m.zarr")
    np.testing.assert_array_equal(again.predict_proba(store), model.predict_proba(store))
    assert evaluate(again, store).score == evaluate(model, store).score > 0.5
    examples = neural.examples.labelled_examples(
        type(model.outcome_), store, None, "way", model.holdout_, 8, 0.2, 0
    )[0].examples
    days = examples.index // 4
    assert len(examples.held_out) % 4 == 0 < len(examples.held_out)
    assert not set(days[examples.held_out]) & set(days[examples.training])


@pytest.mark.long
def test_killed_in_training_and_resumed(where, tmp_path):
    """A run goes on from its checkpoint, to the bits of a fit that nobody killed."""
    gate = Gate(tmp_path / "gate").arm()

    def stopping(command, log, run_id):
        arguments = [sys.executable, "-m", "tests.jobs.stopping", "judged", str(gate.folder)]
        return launch_here([*arguments, *command[command.index("drive") :]], log, run_id)

    config = {
        "data_url": str(where / "bags.zarr"), "model_url": str(tmp_path / "m.zarr"), "target": "y",
        "model": {"kind": "sequence", **SMALL},
    }  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gated, "PATIENCE", 300.0)  # the driver loads JAX, and compiles
        patch.setitem(LAUNCHERS, "local", stopping)
        run = submit("fit", config, root=tmp_path / "runs")
        until(gate.waiting)
    selected = tmp_path / "runs" / run.id / "checkpoints"
    assert list(selected.glob("network-*/state.npz"))
    report = killed(run, gate).result(timeout=300)
    assert (report["n_steps"], report["n_steps_resumed"]) == (40, 20)
    assert not selected.exists()
    whole = SequenceRegressor(**SMALL).fit(BagStore.open(where / "bags.zarr"), target="y")
    result = load_network(tmp_path / "m.zarr")
    assert result.history_ == whole.history_
    for first, other in zip(result.header()["standards"], whole.header()["standards"], strict=True):
        assert first == other
    store = BagStore.open(where / "bags.zarr")
    np.testing.assert_array_equal(result.predict(store), whole.predict(store))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"embedding": "js"}, "key 'embedding' is not used with model.kind: sequence"),
        ({"sample_weight": "y"}, "key 'sample_weight' is not used with model.kind: sequence"),
        ({"model__alpha": 1}, "unknown key 'model.alpha'"),
        ({"model__unit": "rnn"}, "key 'model.unit' is 'rnn'; expected 'sru', 'gru' or 'lstm'"),
        ({"model__scales": "[1.0]"}, "model.scales"),
        ({"model__task": "classification", "target": "[y, way]"}, "name one target"),
    ],
)
def test_refusals(where, tmp_path, arguments, message):
    """By the key's name, before anything is read."""
    data = settings(data_url=where / "bags.zarr", model_url=tmp_path / "m.zarr", target="y")
    assert message in refused(2, "fit", *data, *NETWORK, *settings(**arguments))


@pytest.mark.long
@pytest.mark.usefixtures("with_networks")
def test_config_of_the_guide(where, tmp_path, monkeypatch):
    """The guide's config is taken as it stands, but for its number of steps, and fits."""
    [text] = [
        block
        for block in re.findall(r"```yaml\n(.*?)```", GUIDE.read_text(), re.DOTALL)
        if "kind: sequence" in block
    ]
    store = BagStore.create(tmp_path / "tracks.zarr", 2, target_names=["energy"], box=[(-9, 9)] * 2)
    bags = BagStore.open(where / "bags.zarr").read(0, 40)
    store.append(bags, targets={"energy": np.array([bag[-1, 0] for bag in bags])})
    (tmp_path / "fit.yaml").write_text(text)
    monkeypatch.chdir(tmp_path)
    assert "ridge regression on the bags' means" in done(
        "fit", "fit.yaml", *settings(model__n_steps=6, model__validate_every=3)
    )
    assert load_network("model.zarr").unit == "sru"


@pytest.mark.parametrize("job", ["tune", "retrain"])
def test_ridge_models_alone(job, tmp_path):
    """Jobs that make ridge models take their kind, and say what makes a network."""
    kind = import_job(job).Config.model_fields["model"]
    adapter = TypeAdapter(Annotated[kind.annotation, *kind.metadata])
    assert adapter.validate_python({"kind": "ridge", "alpha": 1.0}).alpha == 1.0
    arguments = settings(out_dir=tmp_path / "out", model__kind="sequence")
    line = refused(2, job, *arguments)
    assert "kind: sequence is for bags fit" in line
    assert "fit a network with bags fit" in line


@pytest.fixture(scope="module")
def network(where):
    """A network of a few steps, fitted to the store."""
    model = SequenceRegressor(**{**SMALL, "n_steps": 10})
    return model.fit(BagStore.open(where / "bags.zarr"), target="y")


@pytest.mark.long
def test_registry(where, network, tmp_path):
    """A network has the name of its content, is listed, promoted, and loaded by its own loader."""
    registry = Registry(tmp_path / "registry")
    name = registry.register(network, report={"rmse": 1.5})
    place = tmp_path / "m.zarr"
    save_model(network, place)
    assert registry.register(place) == name
    again = SequenceRegressor(**{**SMALL, "n_steps": 10}, checkpoints=str(tmp_path / "state"))
    again.fit(BagStore.open(where / "bags.zarr"), target="y")
    assert registry.register(again) == name  # whatever it took, and wherever its state was
    assert [record.estimator for record in registry.list()] == ["SequenceRegressor"]
    registry.promote(name)
    with pytest.raises(ModelError, match=r"bagbasis\.neural\.load_network"):
        registry.load_current()
    loaded = load_network(registry.model_url(name))
    store = BagStore.open(where / "bags.zarr")
    np.testing.assert_array_equal(loaded.predict(store), network.predict(store))
    assert loaded.versions_ == load_network(place).versions_
    champion = Champion(registry)
    bag = [[0.5, 1.0], [-1.0, 0.25], [2.0, 0.0]]
    result = answer_request(champion.served, json.dumps({"bag": bag}).encode())
    assert result["model"] == name
    assert result["prediction"] == pytest.approx(network.predict([np.array(bag)])[0], rel=1e-5)


@pytest.mark.long
def test_on_a_cluster(where, tmp_path):
    """Workers judge and predict with the bits of this process."""
    data, out = settings(data_url=where / "bags.zarr"), settings(model_url=tmp_path / "m.zarr")
    arguments = settings(
        holdout=0.3, target="y", report=tmp_path / "fit.json", **{"model__n_steps": 10}
    )
    done("fit", *data, *out, *NETWORK, *arguments, "--cluster", "local")
    store, model = BagStore.open(where / "bags.zarr"), load_network(tmp_path / "m.zarr")
    report = json.loads((tmp_path / "fit.json").read_text())
    assert report["judged"]["error"] == pytest.approx(evaluate(model, store).error, rel=1e-12)
    table = settings(output_url=tmp_path / "p.zarr")
    done("predict", *data, *out, *table, "--cluster", "local")
    written = zarr.open_group(tmp_path / "p.zarr", mode="r")["predictions"][:]
    np.testing.assert_allclose(written.ravel(), model.predict(store), rtol=1e-5)


def test_without_the_extra(where, tmp_path, monkeypatch):
    """The lean installation checks the config, and says what to install."""

    import_module = importlib.import_module

    def without_jax(name, *package):
        if name.startswith(f"{neural.__name__}."):
            raise ImportError("No module named 'jax'")
        return import_module(name, *package)

    monkeypatch.setattr(importlib, "import_module", without_jax)
    monkeypatch.delitem(vars(neural), "SequenceRegressor")
    data = settings(data_url=where / "bags.zarr", model_url=tmp_path / "m.zarr", target="y")
    line = refused(1, "fit", *data, *NETWORK)
    assert "SequenceRegressor: needs pip install 'bagbasis[neural]'" in line
    assert not (tmp_path / "m.zarr").exists()
