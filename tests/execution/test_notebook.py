"""What is said during the work: a bar in a notebook, and that kernels are compiled."""

from __future__ import annotations

import runpy

import pytest

from bagbasis.execution import notebook
from tests.passes import map_tasks

KERNEL = """
from numba import njit
@njit(cache=True)
def kernel(x):
    return x + 1
"""


class Spoken:
    """A progress that keeps what is said."""

    def __init__(self):
        self.lines = []

    def __call__(self, done, total):
        pass

    def say(self, text):
        self.lines.append(text)


def compile_one(path, report):
    """A task that calls a kernel of a file, compiled unless it was before."""
    return runpy.run_path(path)["kernel"](1)


def kernel_file(folder):
    path = folder / "kernels.py"
    path.write_text(KERNEL)
    return str(path)


def compiled_twice(path):
    """What is said of a kernel that is new, and of one that the cache has."""
    first, second = Spoken(), Spoken()
    for spoken in (first, second):
        assert list(map_tasks(compile_one, [path], sizes=[1], progress=spoken)) == [(0, 2)]
    return first.lines, second.lines


def test_compiling_is_said_once(tmp_path):
    """Where a kernel is compiled that no cache has; not where it is read from the cache."""
    assert compiled_twice(kernel_file(tmp_path)) == (["compiling kernels (once)"], [])


def counted(task, report):
    for done in range(task):
        report(done)


@pytest.mark.parametrize("seconds", [0.0, 1e9])
def test_a_notebook_has_a_bar_without_being_asked(kernel, monkeypatch, seconds):
    """One display that moves and is gone in the end; none for a pass that is quicker."""
    monkeypatch.setattr(notebook, "SECONDS_BETWEEN_UPDATES", seconds)
    list(map_tasks(counted, [4], sizes=[4]))
    outputs = kernel.display_pub.outputs
    if seconds:
        assert outputs == []
        return
    shown = [output["data"]["text/html"] for output in outputs]
    assert '<progress value="1" max="4"' in shown[1]
    assert shown[-1] == ""
    assert [bool(output.get("update")) for output in outputs] == [False] + [True] * 4
    assert len({output["transient"]["display_id"] for output in outputs}) == 1


def test_a_progress_that_is_given_is_the_only_one(kernel, monkeypatch):
    """No bar next to a progress of the caller; a bar says a line once, and as text."""
    monkeypatch.setattr(notebook, "SECONDS_BETWEEN_UPDATES", 0.0)
    list(map_tasks(counted, [4], sizes=[4], progress=lambda done, total: None))
    assert kernel.display_pub.outputs == []
    bar = notebook.watched(None)
    for line in ("<b>", "<b>"):
        bar.say(line)
    [output] = kernel.display_pub.outputs
    assert output["data"]["text/html"] == "<div>&lt;b&gt;</div>"
