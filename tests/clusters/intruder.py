"""Another account of this machine: what ports answer to it, and which files it can read.

``python -m tests.clusters.intruder PORT,PORT,… PATH…`` is started by root and becomes nobody.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import psutil
from distributed import Security
from distributed.core import rpc

ROOT = Path(__file__).parents[2]
NOBODY = 65534
PAGES = ("/", "/status", "/health", "/metrics", "/info/main/workers.html", "/json/counts.json")
SECONDS = 5.0  # an honest server answers in milliseconds


def ports_of(*pids):
    """The ports on which processes, and all that they started, listen."""
    processes = [item for pid in pids for item in _tree(pid)]
    result = set()
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            sockets = process.net_connections("inet")
            result |= {item.laddr.port for item in sockets if item.status == psutil.CONN_LISTEN}
    return result


def ports_told(client):
    """The ports that a cluster says it listens on: of its scheduler, workers, nannies and pages."""
    scheduler = client.scheduler_info()
    yield urlsplit(scheduler["address"]).port
    yield from scheduler["services"].values()
    for address, worker in scheduler["workers"].items():
        yield from (urlsplit(address).port, urlsplit(worker["nanny"]).port)
        yield from worker["services"].values()


def _tree(pid):
    process = psutil.Process(pid)
    return [process, *process.children(recursive=True)]


def open_to_others(ports=(), paths=()):
    """What another account gets: ports that answer, paths that it can read or list."""
    arguments = [",".join(map(str, sorted(ports))), *map(str, paths)]
    command = [sys.executable, "-m", "tests.clusters.intruder", *arguments]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


async def _answers(port, certificate):
    """How a port answers, if it does: as a server of Dask, or with a page."""
    for scheme, arguments in (("tcp", {}), ("tls", certificate)):
        with suppress(OSError, TimeoutError, asyncio.TimeoutError):
            async with rpc(
                f"{scheme}://127.0.0.1:{port}", timeout=SECONDS, connection_args=arguments
            ) as server:
                identity = await asyncio.wait_for(server.identity(), SECONDS)
                return f"{port}: a {identity['type']}, by {scheme}"
    result = await asyncio.gather(*(asyncio.to_thread(_page, port, page) for page in PAGES))
    pages = [page for page, is_there in zip(PAGES, result, strict=True) if is_there]
    return f"{port}: pages {pages}" if pages else None


def _page(port, page):
    """Whether a page is there, or elsewhere."""
    with socket.socket() as client, suppress(OSError):
        client.settimeout(SECONDS)
        client.connect(("127.0.0.1", port))
        client.sendall(f"GET {page} HTTP/1.0\r\n\r\n".encode())
        answer = client.recv(99).split()
        return len(answer) > 1 and answer[0].startswith(b"HTTP/") and int(answer[1]) < 400
    return False


def _readable(path):
    try:
        os.listdir(path) if path.is_dir() else path.read_bytes()
    except PermissionError:
        return False
    return True


async def _main(ports, paths, certificate):
    # all at once: Dask tries a port that refuses it again and again until the time is over
    answers = await asyncio.gather(*(_answers(port, certificate) for port in ports))
    return [answer for answer in answers if answer] + [
        path for path in paths if _readable(Path(path))
    ]


if __name__ == "__main__":
    # before it is nobody, who may not be able to read the packages
    own = Security.temporary().get_connection_args("client")
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)
    numbers = [int(port) for port in sys.argv[1].split(",") if port]
    print(json.dumps(asyncio.run(_main(numbers, sys.argv[2:], own))))
