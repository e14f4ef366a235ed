"""A trial: a mutant's module is imported in a process of its own, and tests run until one fails.

Processes are forked from one that has imported all but the library. No file is changed: the tree of
the mutant is compiled where its module is imported. Kernels of a mutant are compiled anew at their
first call, with all that call them, in a folder of the trial: else NumPy would stand in for them.
"""

from __future__ import annotations

import contextlib
import importlib
import multiprocessing
import os
import resource
import signal
import sys
import tempfile
from collections.abc import Sequence
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType

from .mutations import Mutant, mutated

IMPORTED = (
    "dask.array", "dask.dataframe", "distributed", "duckdb", "hypothesis", "numba", "pandas",
    "pyarrow.parquet", "pydantic", "pytest", "scipy.optimize", "scipy.stats", "sklearn.ensemble",
    "sklearn.model_selection", "sklearn.utils.estimator_checks", "zarr",
)  # fmt: skip
OPTIONS = (
    "-x", "-q", "--no-header", "--timeout=120", "-p", "no:cacheprovider", "-m", "",
    "-o", "addopts=--import-mode=importlib",
)  # fmt: skip
SURVIVED, KILLED = 0, (1, 2, 3, 4)  # exit codes of pytest: a test failed, or cannot be imported
MAX_SECONDS = 240  # of CPU, where the tests of a trial take a minute: a loop without an end
PATIENCE = 900.0  # seconds: all wait for each other

_fork = multiprocessing.get_context("fork")


def prepare() -> None:
    """Import what trials share."""
    for name in IMPORTED:
        importlib.import_module(name)


class Trial:
    """A running trial: pytest with tests and options, of a mutant, or of the library as it is."""

    def __init__(self, mutant: Mutant | None, arguments: Sequence[str]) -> None:
        self.mutant = mutant
        self.folder = tempfile.TemporaryDirectory(prefix="mutant-", ignore_cleanup_errors=True)
        self.process = _fork.Process(target=_run, args=(mutant, arguments, Path(self.folder.name)))
        self.process.start()

    def end(self, timeout: float = PATIENCE) -> str | None:
        """Return "killed", "survived" or "endless"; RuntimeError where tests did not run."""
        self.process.join(timeout)
        code = self.process.exitcode
        output = Path(self.folder.name, "output").read_text(errors="replace")
        if self.process.pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
        self.process.join()
        self.folder.cleanup()
        if code is None or code == -signal.SIGXCPU:
            return "endless"
        if code == SURVIVED:
            return "survived"
        if code < 0 or code in KILLED:
            return "killed"
        raise RuntimeError(f"{self.mutant}: pytest ended with {code}:\n{output[-2000:]}")


def _run(mutant: Mutant | None, arguments: Sequence[str], folder: Path) -> None:
    os.setsid()
    seconds = MAX_SECONDS * (2 if mutant is not None and is_of_kernels(mutant.path) else 1)
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 10))
    output = os.open(folder / "output", os.O_CREAT | os.O_WRONLY)
    os.dup2(output, 1)
    os.dup2(output, 2)
    tempfile.tempdir = os.environ["TMPDIR"] = str(folder)
    if mutant is not None:
        _put_in(mutant, folder)
    pytest = importlib.import_module("pytest")
    sys.exit(int(pytest.main([*OPTIONS, *arguments])))


def _put_in(mutant: Mutant, folder: Path) -> None:
    """Compile the mutant where its module is imported."""
    code_of = SourceFileLoader.get_code

    def get_code(loader: SourceFileLoader, name: str) -> CodeType | None:
        if Path(loader.path).resolve() != mutant.path:
            return code_of(loader, name)
        code: CodeType = compile(mutated(mutant), loader.path, "exec")
        return code

    SourceFileLoader.get_code = get_code  # type: ignore[method-assign]
    if is_of_kernels(mutant.path):
        config = importlib.import_module("numba.core.config")
        config.CACHE_DIR = os.environ["NUMBA_CACHE_DIR"] = str(folder / "kernels")
        compiling = importlib.import_module("bagbasis.core.compiling")
        compiling.EarlyKernel.seconds_early = 0.0


def is_of_kernels(path: Path) -> bool:
    """Tell whether functions of a module are compiled, so that no line of theirs is seen to run."""
    text = path.read_text()
    return any(mark in text for mark in ("@kernel(", "@subkernel(", "@njit", "@intrinsic"))
