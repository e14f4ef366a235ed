"""NumPy stands in for a kernel until it has taken about as long as the compiler would."""

from __future__ import annotations

import time

import pytest

from bagbasis.core.compiling import EarlyKernel
from tests.passes import compiling_at_once


class Compiled:
    """A kernel that notes its calls; it is compiled at the first one, as Numba's are."""

    def __init__(self) -> None:
        self.signatures: list[str] = []
        self.calls: list[str] = []

    def __call__(self, name: str) -> None:
        self.signatures = ["text"]
        self.calls.append(name)


@pytest.fixture
def kernel():
    def arrays(name):
        end = time.thread_time() + 0.05
        while time.thread_time() < end:
            pass

    return EarlyKernel(Compiled(), arrays)


def test_until_it_pays(kernel):
    kernel.seconds_early = 0.08
    for name in "abcd":
        kernel(name)
    assert kernel.compiled.calls == ["c", "d"]


def test_many_numbers():
    kernel = EarlyKernel(Compiled(), lambda name: None, lambda name: name == "few")
    for name in ("few", "many"):
        kernel(name)
    assert kernel.compiled.calls == ["many"]


def test_compiled_by_another_call(kernel):
    with compiling_at_once():
        kernel("a")
    kernel("b")
    assert kernel.compiled.calls == ["a", "b"]


def test_early_again_after_an_error(kernel):
    with pytest.raises(ZeroDivisionError), compiling_at_once():
        raise ZeroDivisionError
    kernel("a")
    assert kernel.compiled.calls == []
