"""``bags retrain``: rounds, their reports, and the exit codes that schedulers see."""

from __future__ import annotations

import json
import os
import shutil

import fsspec
import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families

from bagbasis import BagStore, load_model
from bagbasis.data.storage.lock import writer_lock
from bagbasis.jobs.commands.retrain_report import markdown, round_lines
from bagbasis.models.verdict import RIVALS
from bagbasis.operations import Registry
from tests.data.store.processes import running
from tests.jobs.pages import Page
from tests.jobs.running import assert_picture, bags, done, refused, settings
from tests.operations.retraining.problems import create, difference, grow
from tests.shown import rounded, with_error

MODEL = {
    "model__embedding__n_per_dim": 3,
    "model__random_features__n_features": 16,
    "evaluate_bags": 40,
    "drift__n_bags": 30,
    "drift__n_permutations": 19,
    "tolerance": 10,
}


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """A store of 120 bags and a line whose first round is done."""
    folder = tmp_path_factory.mktemp("base")
    grow(create(folder / "bags.zarr"), 120)
    done("retrain", *retraining(folder))
    return folder


@pytest.fixture
def folder(base, tmp_path):
    """A copy of it with 40 bags more."""
    shutil.copytree(base, tmp_path, dirs_exist_ok=True)
    grow(BagStore.open(tmp_path / "bags.zarr"), 40)
    return tmp_path


@pytest.fixture(scope="module")
def second(base, tmp_path_factory):
    """A folder in which a second round is done, with metrics, 60 new bags of which 20 have no
    label, and what killed rounds left among the reports of the first; and what the job printed."""
    folder = tmp_path_factory.mktemp("second")
    shutil.copytree(base, folder, dirs_exist_ok=True)
    store = grow(BagStore.open(folder / "bags.zarr"), 40)
    store.append(store.read(0, 20), np.full((20, 1), np.nan))
    rounds = folder / "out" / "round-000001"
    for path in partials(rounds):
        path.write_text("half")
    os.utime(partials(rounds)[0], (0, 0))
    return folder, done("retrain", *retraining(folder, metrics_url=folder / "retrain.prom"))


def partials(folder):
    """An old file and a new one, as writers that were killed leave them."""
    return [folder / f".retrain.md.{digit * 32}.partial" for digit in "01"]


def retraining(folder, **changes):
    """``--set`` of a retraining in the folder."""
    places = {"data_url": "bags.zarr", "registry_url": "registry", "out_dir": "out"}
    urls = {key: f"{folder}/{name}" for key, name in places.items()}
    return settings(**{**urls, **MODEL, **changes})


def report_of(folder, number):
    return json.loads((folder / "out" / f"round-{number:06d}" / "retrain.json").read_text())


def hold(pipe, url):
    """Hold the state's folder, as a retraining does."""
    with writer_lock(url):
        pipe.send("holding")
        pipe.recv()


@pytest.mark.long
def test_rounds_and_their_reports(second):
    """A round promotes, leaves JSON, Markdown and a picture; the next call has nothing to do, and
    writes the metrics again, for the file's time."""
    folder, printed = second
    report = report_of(folder, 2)
    assert printed.startswith(f"Round 2: promoted {report['model']} instead of ")
    assert Registry(folder / "registry").current() == report["model"]
    assert (report["n_new"], report["n_new_labelled"]) == (60, 40)
    assert (report["decision"], report["measure"]) == ("promoted", "RMSE")
    assert "NaN" not in (folder / "out" / "round-000002" / "retrain.json").read_text()
    written = folder / "out" / "round-000002"
    assert {path.name for path in written.iterdir()} == {
        "retrain.html",
        "retrain.json",
        "retrain.md",
        "retrain.png",
    }
    text = (written / "retrain.md").read_text()
    for part in (report["model"], report["champion_before"], "RMSE, challenger", "A gate alarms"):
        assert part in text
    assert_picture(written / "retrain.png")
    page = Page(written / "retrain.html")
    page.assert_self_contained()
    assert {printed.splitlines()[0], "Rounds", "Gates of drift", "promoted"} <= set(page.texts)
    assert {*report["gates"]["gates"]} <= set(page.texts)
    [_, newest] = Registry(folder / "registry").list()
    assert newest.report["error"] == report["error"]
    listed = done("models", "list", folder / "registry", "--format", "tsv")
    assert f"RMSE {with_error(report['error'], report['standard_error'])}" in listed
    answer = page.answer
    spread = report["standard_error"]
    assert answer.startswith(
        "The new model was promoted. Predicting y: RMSE "
        f"{with_error(report['error'], spread)} on {report['n_judged']} held-out bags. That is "
    )
    for key, rival in (("champion_error", "champion before"), ("constant_error", "best constant")):
        assert f"the {rival} ({rounded(report[key], spread)}" in answer
    assert page.texts[2] == "The new model was promoted."
    assert with_error(report["error"], spread) in page.texts, "in the table, too"
    first = Page(folder / "out" / "round-000001" / "retrain.html")
    assert any("It is the first model of the registry." in text for text in first.texts)
    assert "counted again" not in first.worries, "the first round counts all bags in any case"
    begun = report_of(folder, 1)
    for key, name in RIVALS.items():
        assert f"{name} ({rounded(begun[key], begun['standard_error'])}" in first.answer
    assert report["forest_error"] is None, "a later round reads new bags alone"
    assert "no worse than the champion" not in first.worries, "there was none"
    assert not any("decided anew" in text for text in first.texts)
    assert f"Few bags: the errors are those of {report['n_judged']}." in page.worries
    metrics = folder / "retrain.prom"
    before = metrics.read_bytes()
    os.utime(metrics, (0, 0))
    assert "nothing new" in done("retrain", *retraining(folder, metrics_url=metrics))
    assert not (folder / "out" / "round-000003").exists()
    assert (metrics.read_bytes(), metrics.stat().st_mtime > 0) == (before, True)


@pytest.mark.long
def test_what_killed_rounds_left_is_swept(base, second):
    """What a killed round left among its reports goes with a later one, a day old; what may still
    be written stays."""
    rounds = second[0] / "out" / "round-000001"
    before = {path.name for path in (base / "out" / "round-000001").iterdir()}
    assert {path.name for path in rounds.iterdir()} == {*before, partials(rounds)[1].name}


@pytest.mark.long
def test_kept_champion_is_exit_code_3(folder):
    """A gate that keeps the champion is not an error, and not success either."""
    store = BagStore.open(folder / "bags.zarr")
    champion = Registry(folder / "registry").current()
    store.append([0.1 * bag for bag in store.read(0, 60)], store.targets(0, 60))
    result = bags("retrain", *retraining(folder, drift__action="refuse"))
    assert result.exit_code == 3
    assert "kept" in result.stdout
    assert "the new bags drifted" in result.stdout
    assert Registry(folder / "registry").current() == champion
    assert report_of(folder, 2)["decision"] == "kept"


@pytest.mark.long
def test_two_at_once_is_exit_code_4(folder):
    """A second retraining is one line with an exit code of its own; the next one does the round,
    whose reports go wherever the registry can be."""
    with running(hold, str(folder / "registry.retrain")) as (_, pipe):
        assert pipe.poll(60)
        line = refused(4, "retrain", *retraining(folder))
    assert "registry.retrain: another retraining is running; nothing was done" in line
    place = f"memory://{folder.name}"
    done("retrain", *retraining(folder, out_dir=f"{place}/out"))
    fs, root = fsspec.core.url_to_fs(f"{place}/out/round-000002")
    assert len(fs.ls(root)) == 4
    fs.rm(root, recursive=True)


@pytest.mark.long
def test_changed_config_is_exit_code_2(folder):
    """What a line's models are made with stays: one line names the key and what to do."""
    line = refused(2, "retrain", *retraining(folder, holdout=0.3))
    assert "key 'holdout' is 0.3" in line
    assert "were made with 0.1; put it back, or give another state_url" in line
    line = refused(2, "retrain", *retraining(folder, model__embedding__n_per_dim=4))
    assert "key 'model.embedding.n_per_dim' is 4" in line
    done("retrain", *retraining(folder, state_url=folder / "another"))


@pytest.mark.long
def test_an_embedding_by_name_and_groups_held_out(tmp_path):
    """As ``bags fit`` takes them; a line that named them in full is the same line."""
    store = BagStore.create(tmp_path / "bags.zarr", 2, target_names=["y", "day"])
    rng = np.random.default_rng(0)

    def more():
        points, days = [rng.random((9, 2)) for _ in range(60)], np.arange(60) // 3
        y = [bag[:, 0].mean() for bag in points]
        store.append(points, targets={"y": y, "day": days})

    more()
    changes = {
        "model__embedding__n_per_dim": 3,
        "target": "y",
        "embedding": "moments",
        "holdout": "{fraction: 0.3, groups: day}",
    }
    done("retrain", *retraining(tmp_path, **changes))
    registry = Registry(tmp_path / "registry")
    model = load_model(registry.model_url(registry.current()))
    assert type(model.embedding).__name__ == "MomentsEmbedding"
    assert (model.holdout_["fraction"], model.holdout_["groups"]) == (0.3, "day")
    assert report_of(tmp_path, 1)["n_judged"] % 3 == 0
    more()
    named = {key: first for key, first in MODEL.items() if key != "model__embedding__n_per_dim"}
    urls = {"data_url": "bags.zarr", "registry_url": "registry", "out_dir": "out"}
    full = {**named, **{key: f"{tmp_path}/{name}" for key, name in urls.items()}}
    full |= {"model__embedding__name": "moments", "target": "y"}
    done("retrain", *settings(**full, holdout="{fraction: 0.3, groups: day}"))
    assert report_of(tmp_path, 2)["number"] == 2
    line = refused(2, "retrain", *retraining(tmp_path, **{**changes, "embedding": "js"}))
    assert "key 'model.embedding" in line
    assert "embedding" in refused(2, "retrain", *retraining(tmp_path, embedding="momentz"))


@pytest.mark.long
def test_line_begun_by_an_earlier_version(folder):
    """Settings written when HDD had two methods, and before some parameters: the line goes on."""
    path = folder / "registry.retrain" / "state.json"
    state = json.loads(path.read_text())
    embedding = state["settings"]["model"]["embedding"]
    embedding |= {"method": "fast", "n_integration": 2000}
    for name in ("uncertainty", "solver", "head"):
        del state["settings"]["model"][name]
    del state["settings"]["model"]["random_features"]["structure"]
    path.write_text(json.dumps(state))
    done("retrain", *retraining(folder))
    state = json.loads(path.read_text())
    state["settings"]["model"]["embedding"]["method"] = "direct"
    path.write_text(json.dumps(state))
    line = refused(2, "retrain", *retraining(folder))
    assert "key 'model.embedding.method': this version does not have method='direct'" in line
    assert "give another state_url to begin anew" in line


@pytest.mark.parametrize(
    ("changes", "code", "message"),
    [
        ({"out_dir": "x" * 300}, 2, "a name in a path has at most 255 bytes"),
        ({"out_dir": "/proc/nowhere"}, 1, "/proc/nowhere/report: cannot be written"),
        ({"metrics_url": "x" * 300}, 2, "a name in a path has at most 255 bytes"),
        ({"metrics_url": "/proc/nowhere/m.prom"}, 1, "m.prom: cannot be written"),
    ],
)
def test_no_place_for_reports_is_no_round(tmp_path, changes, code, message):
    """Where the reports of a round cannot go, no model is made."""
    grow(create(tmp_path / "bags.zarr"), 20)
    line = refused(code, "retrain", *retraining(tmp_path, **changes))
    assert message in line
    assert "section" not in line
    assert not (tmp_path / "registry").exists()


@pytest.mark.long
def test_on_a_cluster(folder, tmp_path):
    """Workers make the model that one process makes, and judge it alike."""
    other = tmp_path / "other"
    for name in ("registry", "registry.retrain"):
        shutil.copytree(folder / name, other / name)
    data = {"data_url": folder / "bags.zarr"}
    done("retrain", *retraining(folder, **data))
    done("retrain", *retraining(other, **data), "--cluster", "local")
    item, two = report_of(folder, 2), report_of(other, 2)
    models = [
        load_model(f"{item['registry_url']}/models/{item['model']}.zarr") for item in (item, two)
    ]
    assert difference(*models) < 1e-5
    assert item["error"] == pytest.approx(two["error"], rel=1e-6)
    assert item["bag_passes"] == two["bag_passes"]


REPORT = {
    "number": 7, "at": "2026-01-01T00:00:00+00:00", "stop": 200, "window": [0, 200], "n_left": 0,
    "model": "b" * 16, "champion_before": "a" * 16, "decision": "kept", "reasons": ["one", "two"],
    "n_new": 10, "n_new_labelled": 8, "n_judged": 5, "n_bags_fitted": 150, "alpha": 0.1,
    "measure": "RMSE", "error": 0.5, "champion_error": None, "p_value": 0.001, "drift": None,
    "bag_passes": {"new": 10}, "new_sequence": None, "recomputed": "periodic check",
    "check": {"differences": {"gram": 0.25, "counts": 0.0}, "bound": 1e-5}, "corrupt": True,
    "n_outside_box": {"points": 3, "response points": 0}, "seconds": 1.0,
}  # fmt: skip


def test_corruption_is_said_loudly():
    """Corrupt sums stand first after the decision, on the terminal and in the report."""
    decision, second, *rest = round_lines(REPORT)
    assert decision == f"Round 7: kept {'a' * 16}, not {'b' * 16}: one; two"
    assert second.startswith("CORRUPT SUMS: gram differed by 0.25")
    assert rest == [
        "All bags were counted again: periodic check",
        "Outside the box, of the new bags: 3 points",
    ]
    assert second in markdown(REPORT)
    assert "| gram | 0.25 |" in markdown(REPORT)


def test_gates_of_an_earlier_version_are_shown():
    """A round that it decided is reported today; the level of a horizon was its alpha."""
    gates = {"level": 0.01, "horizon": 5, "n_tested": 1, "min_effect": 0.0, "gates": {}}
    for name in ("level_of_horizon", "alpha"):
        report = {**REPORT, "gates": {**gates, name: 0.04, "action": "report"}}
        assert "a chance of 0.04 in 5 rounds" in markdown(report)


@pytest.mark.long
def test_prometheus_reads_the_metrics_of_a_round(second):
    """The numbers of the report."""
    folder, _ = second
    report = report_of(folder, 2)
    by_name = {}
    for family in text_string_to_metric_families((folder / "retrain.prom").read_text()):
        for sample in family.samples:
            assert sample.labels.pop("registry") == f"{folder}/registry"
            by_name[sample.name.removeprefix("bagbasis_retrain_"), *sample.labels.values()] = (
                sample.value
            )
    gates = report["gates"]["gates"]
    assert by_name == {
        ("round",): 2,
        ("duration_seconds",): pytest.approx(report["seconds"]),
        ("new_bags",): 60,
        ("fitted_bags",): report["n_bags_fitted"],
        ("judged_bags",): report["n_judged"],
        **{("decision", item): item == "promoted" for item in ("promoted", "kept", "overtaken")},
        ("error", "challenger"): report["error"],
        ("error", "champion"): report["champion_error"],
        **{("drift_p_value", name): gate["p_value"] for name, gate in gates.items()},
        **{("drift", name): gate["drifted"] for name, gate in gates.items()},
    }


@pytest.mark.long
def test_gates_that_bet(folder):
    """Their wealth stands in the report, in the metrics and in the picture; a chart of one round
    is not drawn on the page."""
    changes = {"drift__gate": "e_process", "metrics_url": f"{folder}/retrain.prom"}
    done("retrain", *retraining(folder, **changes))
    report = report_of(folder, 2)
    assert set(report["wealth"]) == set(report["gates"]["gates"]) == {"inputs", "concept", "labels"}
    assert report["gates"]["gate"] == "e_process"
    out = folder / "out" / "round-000002"
    assert "a chance of 0.05 in all rounds together" in (out / "retrain.md").read_text()
    assert_picture(out / "retrain.png")
    texts = Page(out / "retrain.html").texts
    assert not any("Wealth of the gates that bet" in text for text in texts)
    families = text_string_to_metric_families((folder / "retrain.prom").read_text())
    wealth = {f.name: f for f in families}["bagbasis_retrain_drift_wealth"].samples
    assert {s.labels["gate"]: s.value for s in wealth} == pytest.approx(report["wealth"])
