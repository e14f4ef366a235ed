"""What a script sees while kernels are compiled."""

import logging

import pytest
from numba.core import event

from bagbasis.execution import worker_threads


def compile_kernel(folder, name):
    """Compile a kernel that a cache could have, as numba tells its listeners."""
    path = folder / f"{name}.py"
    path.write_text(f"import numba\n@numba.njit(cache=True)\ndef {name}(x):\n    return x + 1\n")
    by_name = {}
    exec(compile(path.read_text(), str(path), "exec"), by_name)  # noqa: S102 - written above
    by_name[name](1)


@pytest.mark.long
def test_compiling_is_logged_once_unless_somebody_says_it(tmp_path, caplog):
    """As a warning of the log, which Python prints; not next to a progress that says it."""
    messages = []
    listener = worker_threads.Compiling(worker_threads.log_unless_heard)
    with event.install_listener("numba:compile", listener), caplog.at_level(logging.WARNING):
        with worker_threads.hearing_compilers(messages.append):
            listener.has_told = False
            compile_kernel(tmp_path, "first")
        assert messages == [worker_threads.COMPILING]
        assert caplog.text == ""
        listener.has_told = False
        for name in ("second", "third"):
            compile_kernel(tmp_path, name)
    assert caplog.text.count(worker_threads.COMPILING) == 1
    assert "bags warm-up" in caplog.text


def test_threads_install_the_listener():
    """The first computation of a process."""
    with worker_threads.kernel_threads():
        pass
    assert worker_threads.log_compilers.cache_info().currsize == 1
