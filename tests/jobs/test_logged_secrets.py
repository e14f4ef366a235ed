"""What other libraries say of a secret, in errors and logs, is cut before it is shown or kept."""

from __future__ import annotations

import json
import logging

import click
import pytest

from bagbasis.jobs.runs import submit
from bagbasis.jobs.runs.driver import run_driver
from bagbasis.jobs.shell import guarded

URL = "https://me:hush/hush@proxy.example.org"


@pytest.mark.parametrize("debug", [False, True])
def test_foreign_errors_and_logs(debug, capsys):
    """An error of a client, its traceback, and its warnings."""

    def fail():
        logging.getLogger("bagbasis.elsewhere").warning("retrying %s", URL)
        raise OSError(f"cannot connect to {URL}?token=hush")

    assert guarded("fit", fail, debug) == 1
    message = "".join(capsys.readouterr())
    assert "hush" not in message
    assert message.count("https://…") == 2 + debug


def test_a_failed_run(tmp_path, monkeypatch):
    """Its state has the error and the traceback, without the secret."""
    monkeypatch.setattr("bagbasis.jobs.runs.submission.LAUNCHERS", {"local": lambda *_: {}})
    config = {"data_url": str(tmp_path / "a"), "model_url": str(tmp_path / "m")}
    run = submit("fit", config, root=tmp_path / "runs")

    def fail(*_):
        raise OSError(f"cannot connect to {URL}")

    monkeypatch.setattr("bagbasis.jobs.runs.driver.run_and_report", fail)
    monkeypatch.setattr("bagbasis.jobs.runs.driver.signal.signal", lambda *_: None)
    with pytest.raises(OSError, match="cannot connect"):
        run_driver(run.url, run.record()["attempt"], str(tmp_path / "log"), click.Abort)
    state = json.dumps([run.state().error, run.state().traceback], ensure_ascii=False)
    assert "hush" not in state
    assert state.count("…@proxy.example.org") >= 2
