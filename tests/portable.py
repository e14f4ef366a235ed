"""``make test-portable``: the numerical rooms' tests on other machines than this one.

Another machine is another environment: kernels of OpenBLAS for other processors (Haswell has FMA,
Sandybridge has not: they round otherwise), Numba's code for any x86-64 (no FMA, no AVX, and so no
tiles of AMX, which the other environments use where there are some), one core, and eight processes
at once, each with a lane of one core. Tests marked ``portable`` run in each.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import time

ONE_LANE = {"BAGBASIS_LANE_CORES": "1"}
ONE_CORE = ["taskset", "--cpu-list", str(min(os.sched_getaffinity(0)))]

# what it is called, the environment, processes, and what the command begins with
MACHINES: tuple[tuple[str, dict[str, str], int, list[str]], ...] = (
    ("OpenBLAS's kernels for Haswell", {"OPENBLAS_CORETYPE": "Haswell"}, 2, []),
    ("OpenBLAS's kernels for Sandybridge", {"OPENBLAS_CORETYPE": "Sandybridge"}, 2, []),
    ("Numba's code for any x86-64", {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}, 2, []),
    ("one core", ONE_LANE, 0, ONE_CORE),
    ("eight lanes of one core", ONE_LANE, 8, []),
)


def main() -> int:
    """Run the tests in each environment; return 1 if any fails."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        sys.exit("other processors can be had on Linux and x86-64 alone")
    failed = []
    for name, environment, n_processes, prefix in MACHINES:
        print(f"--- {name}", flush=True)
        begun = time.monotonic()
        processes = ["--numprocesses", str(n_processes), "--dist", "loadfile"]
        command = [*prefix, sys.executable, "-m", "pytest", "-m", "portable", *processes]
        code = subprocess.run([*command, *sys.argv[1:]], env=os.environ | environment).returncode
        print(f"--- {name}: {time.monotonic() - begun:.0f} s, exit code {code}", flush=True)
        if code:
            failed.append(name)
    print(f"failed: {', '.join(failed)}" if failed else "all pass")
    return min(len(failed), 1)


if __name__ == "__main__":
    sys.exit(main())
