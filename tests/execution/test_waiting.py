"""Waiting for a result: a cluster without workers says so, and is given up in the end."""

from __future__ import annotations

import pytest

from bagbasis.errors import ClusterError
from bagbasis.execution import waiting


class Client:
    def __init__(self, looks):
        self._looks = iter(looks)

    def nthreads(self):
        found = next(self._looks)
        if isinstance(found, Exception):
            raise found
        return {"a": 1} if found else {}


class Slow:
    """A result that comes when so many looks are over."""

    def __init__(self, looks, error=None):
        self.client, self.left, self.error = Client(looks), len(looks), error

    def result(self, timeout):
        assert timeout == waiting.SECONDS_BETWEEN_LOOKS
        if self.left:
            self.left -= 1
            raise TimeoutError
        if self.error:
            raise self.error
        return "found"

    def done(self):
        return not self.left and self.error is not None


def test_no_workers_for_a_while():
    """Said each time, with when that began; a terminal shows a line once."""
    said = []
    assert waiting.gathered(Slow([True, False, False, OSError(), True]), said.append) == "found"
    assert [text[:17] for text in said] == ["no workers since "] * 2


def test_workers_all_the_time():
    said = []
    assert waiting.gathered(Slow([True] * 3), said.append) == "found"
    assert said == []


def test_no_workers_any_more(monkeypatch):
    monkeypatch.setattr(waiting, "PATIENCE", -1.0)
    with pytest.raises(ClusterError, match="has had no workers for"):
        waiting.gathered(Slow([True, False, False]))


def test_a_time_out_of_the_task_itself():
    with pytest.raises(TimeoutError, match="its own"):
        waiting.gathered(Slow([True], TimeoutError("its own")))
