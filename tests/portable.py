"""``make test-portable``: the numerical packages' tests on other machines than this one.

Another machine is another environment: kernels of OpenBLAS for other processors (Haswell has FMA,
Sandybridge has not: they round otherwise), Numba's code for any x86-64 (no FMA, no AVX), one core,
or two processes at once, each with one core. The files that are marked ``portable``
run in each, but for their ``long`` tests: they hold kernels, products and solvers, and what is
fitted with them, to tolerances that follow from the arithmetic.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import time
from pathlib import Path

TESTS = Path(__file__).parent
MARK = "\npytestmark = pytest.mark.portable\n"
ONE_CORE_EACH = {"BAGBASIS_WORKER_CORES": "1"}
ONE_CORE = ["taskset", "--cpu-list", str(min(os.sched_getaffinity(0)))]

# what it is called, the environment, processes, and what the command begins with. Processors and
# cores are tried together: each run imports the library, which takes as long as the tests
MACHINES: tuple[tuple[str, dict[str, str], int, list[str]], ...] = (
    ("OpenBLAS's kernels for Haswell", {"OPENBLAS_CORETYPE": "Haswell"}, 0, []),
    (
        "OpenBLAS's kernels for Sandybridge, two processes of one core",
        {"OPENBLAS_CORETYPE": "Sandybridge", **ONE_CORE_EACH},
        2,  # a process more imports the library for longer than it runs tests
        [],
    ),
    (
        "Numba's code for any x86-64, one core",
        {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": "", **ONE_CORE_EACH},
        0,
        ONE_CORE,
    ),
)


def main() -> int:
    """Run the tests in each environment; return 1 if any fails."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        sys.exit("other processors can be had on Linux and x86-64 alone")
    # these files alone: to import all others takes as long as to run these
    files = [str(path) for path in sorted(TESTS.rglob("test_*.py")) if MARK in path.read_text()]
    failed = []
    for name, environment, n_processes, prefix in MACHINES:
        print(f"--- {name}", flush=True)
        begun, used = time.monotonic(), _seconds_of_children()
        processes = ["--numprocesses", str(n_processes), "--dist", "loadfile"]
        command = [
            *prefix,
            sys.executable,
            "-m",
            "pytest",
            "-m",
            "portable and not long",
            *processes,
        ]
        code = subprocess.run(
            [*command, *sys.argv[1:], *files], env=os.environ | environment
        ).returncode
        took, used = time.monotonic() - begun, _seconds_of_children() - used
        print(f"--- {name}: {took:.0f} s, {used:.0f} s of CPU, exit code {code}", flush=True)
        if code:
            failed.append(name)
    print(f"failed: {', '.join(failed)}" if failed else "all pass")
    return min(len(failed), 1)


def _seconds_of_children() -> float:
    """Return the CPU time of all processes that were started here and have ended."""
    times = os.times()
    return times.children_user + times.children_system


if __name__ == "__main__":
    sys.exit(main())
