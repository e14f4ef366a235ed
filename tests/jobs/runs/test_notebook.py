"""What IPython shows of a run: once on a terminal, and until it is over in a notebook."""

from __future__ import annotations

import pickle
import threading

import pytest

from bagbasis import StoreError
from bagbasis.jobs.runs import LAUNCHERS, Run, Status, run as runs, submit
from tests.execution.gated import until
from tests.jobs.runs.drivers import driven

CONFIG = {"data_url": "/data/bags.zarr", "model_url": "/data/m.zarr"}


@pytest.fixture(autouse=True)
def _often(monkeypatch):
    """A notebook looks at a run every few milliseconds."""
    monkeypatch.setattr(runs, "SHOWN_SECONDS", 0.01)


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setitem(LAUNCHERS, "local", lambda *arguments: {})
    return submit("fit", CONFIG, root=tmp_path)


def shown(shell):
    """What was displayed last, as a notebook sees it."""
    return shell.display_pub.outputs[-1]["data"]["text/html"]


def no_follower():
    return not any(thread.name.endswith("(_follow)") for thread in threading.enumerate())


@pytest.mark.parametrize("what", ["run", "progress"])
def test_a_notebook_shows_a_run_as_it_moves(kernel, run, what):
    """A run, or its progress, is one display that is replaced until the run is over."""
    driving = driven(run)
    kernel.display_formatter.format(run if what == "run" else run.progress())
    assert "is submitted" in shown(kernel)
    with driving.running():
        driving.progress("fit", 1_000, 4_000)
        driving.beat()
        until(lambda: "fit: 1,000 of 4,000 (25 %)" in shown(kernel))
        assert '<progress value="1000" max="4000"' in shown(kernel)
    until(lambda: "is done" in shown(kernel))
    until(no_follower)
    first, *later = kernel.display_pub.outputs
    assert not first.get("update")
    assert all(output["update"] for output in later)
    assert len({output["transient"]["display_id"] for output in kernel.display_pub.outputs}) == 1


def test_a_terminal_shows_it_once(shell, run):
    """Without a notebook there is one line, and nothing follows."""
    shell.display_formatter.format(run)
    [output] = shell.display_pub.outputs
    assert output["data"]["text/plain"] == f"run {run.id} is submitted"
    assert no_follower()


def test_a_run_that_is_over_is_not_followed(kernel, run):
    """What went wrong is shown, as text and never as HTML of its own."""
    driving = driven(run)
    with pytest.raises(StoreError), driving.running():
        raise StoreError("<script>s.zarr</script>: not found")
    kernel.display_formatter.format(run)
    assert "failed; &lt;script&gt;s.zarr&lt;/script&gt;: not found" in shown(kernel)
    assert no_follower()


def test_a_filesystem_that_is_away(kernel, run, monkeypatch):
    """A look that fails is no end: the next one shows the run again."""
    state, failed = Run.state, []

    def away(self):
        if threading.current_thread() is not threading.main_thread() and len(failed) < 2:
            failed.append(1)
            raise StoreError("away")
        return state(self)

    monkeypatch.setattr(Run, "state", away)
    kernel.display_formatter.format(run)
    run.cancel()
    until(lambda: "is cancelled" in shown(kernel))
    assert len(failed) == 2


def test_progress_is_a_tuple(run):
    """Outside of IPython the progress is two numbers, also as a copy."""
    progress = run.progress()
    assert progress == (0, 0)
    assert pickle.loads(pickle.dumps(progress)) == (0, 0)
    assert run.status() is Status.SUBMITTED
