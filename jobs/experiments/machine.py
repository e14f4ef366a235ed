"""On which machine, and with which versions, something was measured."""

from __future__ import annotations

import os
import platform
from typing import Any

from bagbasis.core.versions import DISTRIBUTED, versions_of
from bagbasis.execution.worker_threads import worker_cores


def machine() -> dict[str, Any]:
    """Return the processor's name, the cores this process uses, and the machine's memory."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "cpu": cpu_name(),
        "cores": worker_cores(),
        "memory_gib": round(memory / 2**30, 1),
        "system": f"{platform.system()} {platform.machine()}",
    }


def cpu_name() -> str:
    """Return the processor's name from Linux; `platform.processor` only gives the architecture."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            for line in lines:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def versions() -> dict[str, str]:
    return {"python": platform.python_version()} | versions_of(DISTRIBUTED)


def peak_memory() -> int:
    """Return the largest resident bytes of this process so far.

    On Linux `getrusage` would include the process that started it.
    """
    with open("/proc/self/status", encoding="utf-8") as lines:
        [line] = [line for line in lines if line.startswith("VmHWM")]
    return 1024 * int(line.split()[1])
