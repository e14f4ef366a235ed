"""Fits of submitted runs: a run knows its own model again, and nobody else's."""

from __future__ import annotations

import json
import os
import signal
import sys
import time

import numpy as np
import pytest
import zarr

from bagbasis import BagStore, ConfigError, DoubleBasisRegressor, ModelError, load_model
from bagbasis.jobs.commands import fit
from bagbasis.jobs.runs import LAUNCHERS, Status, record as states, resume, submit
from bagbasis.jobs.runs.launchers import launch_here
from bagbasis.jobs.terminal import Terminal
from tests.execution.gated import Gate, kill, until
from tests.jobs.running import done, refused, settings

MODEL = {"embedding": {"name": "projection"}, "random_features": {"n_features": 32}}


def run_fit(data, model_url, run, **config):
    """``bags fit`` in this process, as the job of a run."""
    console = Terminal()
    console.run = run
    values = {"data_url": str(data / "bags.zarr"), "model_url": str(model_url), "model": MODEL}
    return fit.run(fit.Config(**{**values, **config}), console)


def drive_here(command, log, run_id):
    """A launcher whose driver is this process, which has imported and compiled all."""
    handlers = {name: signal.getsignal(name) for name in (signal.SIGINT, signal.SIGTERM)}
    try:
        done(*command[command.index("drive") :])
    finally:
        for name, handler in handlers.items():
            signal.signal(name, handler)
    return {}


def killed(run, gate):
    """The run, whose driver came to the gate and was killed there by SIGKILL, resumed here."""
    until(gate.waiting)
    [pid] = gate.waiting()
    kill(pid)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(states, "DEAD_SECONDS", 0.0)
        assert run.status() is Status.DIED
        patch.setitem(LAUNCHERS, "local", drive_here)
        return resume(run)


@pytest.mark.long
@pytest.mark.parametrize("place", ["saved", "discarded"])
def test_killed_between_saving_and_the_end(regression, tmp_path, place):
    """A driver killed when its model is there, but the run is not done: resumed, it finishes with
    that model, makes no other one, and leaves no checkpoints."""
    gate = Gate(tmp_path / "gate").arm()

    def stopping(command, log, run_id):
        arguments = [sys.executable, "-m", "tests.jobs.stopping", place, str(gate.folder)]
        return launch_here([*arguments, *command[command.index("drive") :]], log, run_id)

    url = tmp_path / "m.zarr"
    config = {"data_url": str(regression / "bags.zarr"), "model_url": str(url), "model": MODEL}
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(LAUNCHERS, "local", stopping)
        run = submit("fit", config, root=tmp_path / "runs")
        until(gate.waiting)
    selected = tmp_path / "runs" / run.id / "checkpoints"
    assert bool(list(selected.glob("fit-*/group-*.npz"))) == (place == "saved")
    written = (url / "zarr.json").stat()  # which is replaced as a whole
    run = killed(run, gate)
    report = run.result(timeout=120)
    assert report["n_bags_fitted"] == 300
    assert report["alpha"] == load_model(url).alpha_
    assert (url / "zarr.json").stat().st_ino == written.st_ino
    assert (url / "zarr.json").stat().st_mtime_ns == written.st_mtime_ns
    assert not selected.exists()


@pytest.mark.long
def test_found_model_and_checkpoints_elsewhere(regression, tmp_path):
    """A run that finds its model removes abandoned checkpoints at its user's own URL, and only
    those: which of the others are its own nobody knows."""
    run_fit(regression, tmp_path / "m.zarr", "a")
    folders = [tmp_path / "kept" / f"fit-{digit * 32}" for digit in "01"]
    for folder, age in zip(folders, (0, 2 * 86400), strict=True):
        folder.mkdir(parents=True)
        (folder / "fit.json").write_text("{}")
        os.utime(folder / "fit.json", (time.time() - age,) * 2)
    run_fit(regression, tmp_path / "m.zarr", "a", checkpoints=str(tmp_path / "kept"))
    assert [folder.exists() for folder in folders] == [True, False]


def test_a_model_of_other_bags_is_not_finished(tmp_path):
    """A run that goes on after its store was made anew fits to the new bags."""
    rng = np.random.default_rng(0)

    def remade(shift):
        spreads = rng.uniform(0.5, 2, 40)
        bags = [rng.normal(shift, s, (12, 2)) for s in spreads]
        store = BagStore.create(tmp_path / "bags.zarr", 2, target_names=["y"], overwrite=True)
        return store.append(bags, {"y": spreads})

    model = {"embedding": {"name": "moments"}, "random_features": False, "alpha": 0.1}
    remade(0)
    run_fit(tmp_path, tmp_path / "m.zarr", "a", model=model)
    store = remade(3)
    run_fit(tmp_path, tmp_path / "m.zarr", "a", model=model)
    again = load_model(tmp_path / "m.zarr")
    other = DoubleBasisRegressor("moments", random_features=False, alpha=0.1).fit(store)
    np.testing.assert_array_equal(again.predict(store), other.predict(store))


@pytest.mark.long
def test_model_of_somebody_else(regression, tmp_path):
    """A model of another run, or of none, is refused as before; only told to, it is replaced."""
    url = tmp_path / "m.zarr"
    for first, then in ((None, "a"), ("a", "b"), ("b", None)):
        run_fit(regression, url, first, overwrite=True)
        with pytest.raises(ModelError, match="exists already"):
            run_fit(regression, url, then)
    assert run_fit(regression, url, "b")["model_url"] == str(url)


@pytest.mark.long
def test_killed_between_model_and_report(regression, tmp_path, monkeypatch):
    """By hand, too, the same fit is done again and reports; it is not taken from the model.

    The data at the URL may be others by then. A fit that wrote its report is done, and refused.
    """
    url, report = tmp_path / "m.zarr", tmp_path / "report.json"
    urls = settings(data_url=regression / "bags.zarr", model_url=url, report=report)
    small = settings(embedding="projection", model__random_features__n_features=32)
    command = ["fit", *urls, *small]
    with monkeypatch.context() as patch:
        patch.setattr(Terminal, "line", lambda *_: 1 / 0)
        refused(1, *command)
    written = (url / "zarr.json").stat()
    assert "exists already" in refused(1, *command, *settings(holdout=0.5))
    done(*command)
    assert json.loads(report.read_text())["n_bags_fitted"] == 300
    assert (url / "zarr.json").stat().st_ino != written.st_ino
    assert "exists already" in refused(1, *command)


@pytest.mark.long
def test_killed_while_saving(regression, monkeypatch):
    """Where a model is not put in place by a rename, half of it stands in nobody's way; the whole
    is the run's own, which may save it again."""
    url = "memory://killed-while-saving/m.zarr"

    def die(*args):
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(zarr.Group, "update_attributes", die)
        with pytest.raises(KeyboardInterrupt):
            run_fit(regression, url, "a")
    for _ in range(2):
        run_fit(regression, url, "a")
    with pytest.raises(ModelError, match="exists already"):
        run_fit(regression, url, "b")
    assert load_model(url).report_["n_bags_fitted"] == 300


@pytest.mark.long
def test_groups_are_kept_out(regression, tmp_path):
    """A config holds whole groups out, is judged on them, and is refused by the key's name."""
    arguments = {"fraction": 0.3, "groups": "n_components"}
    url = tmp_path / "m.zarr"
    report = run_fit(regression, url, None, holdout=arguments)
    assert report["judged"]["n"] == report["n_bags_held_out"] > 0
    assert load_model(url).holdout_.items() > arguments.items()
    with pytest.raises(ConfigError, match="key 'holdout': holdout has after and a fraction"):
        run_fit(regression, url, None, overwrite=True, holdout={**arguments, "after": "2026-01-01"})
