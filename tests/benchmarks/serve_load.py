"""Load on `bags serve`: large bodies, slow uploads and vanishing clients next to one with one bag.

``python -m tests.benchmarks.serve_load [--seconds 20] [--command bags]`` prints, of one run:
percentiles of the latency of one client, alone and with the others; the peak of the memory of the
server's processes above the idle server; and how long the server took to end under load.
"""

from __future__ import annotations

import argparse
import json
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import psutil

from bagbasis import DoubleBasisRegressor
from bagbasis.jobs.commands.serving.champion_app import ALL_BODIES, SMALL_BODY
from bagbasis.operations import Registry
from tests.jobs.serving import Server

SIZE = 62 * 2**20
ONE = json.dumps({"bag": [[0.1, 2.0], [0.3, 1.7]]}).encode()
BODIES = {
    "points": (b'{"bag": [', b"[1.5,2.5],", b"[1,2]]}"),
    "short points": (b'{"bag": [', b"[1],", b"[1]]}"),
    "bags": (b'{"bags": [', b"[[1,2]],", b"[[1,2]]]}"),
    "objects": (b'{"bag": [', b"{},", b"{}]}"),
    "empty": (b'{"bag": [', b"[],", b"[]]}"),
    "deep": (b'{"bag": ', b"[", b"]}"),
    "NaN": (b'{"bag": [', b"[NaN],", b"[1]]}"),
    "null": (b'{"bag": [', b"[null],", b"[1]]}"),
    "long numbers": (b'{"bag": [', b"[1.2345678901234567890123456789,2],", b"[1,2]]}"),
    "one number": (b'{"bag": [[1,', b"1", b"]]}"),
    "columns": (b'{"bag": [[1,2]], "columns": [', b'"a",', b'"a"]}'),
    "small bodies of bags": (b'{"bags": [', b"[1],", b"[1]]}"),
}
SMALL = ("small bodies of bags",)  # which the server itself answers


def body_of(kind: str) -> bytes:
    head, item, tail = BODIES[kind]
    size = SMALL_BODY if kind in SMALL else SIZE
    return head + item * ((size - len(head) - len(tail)) // len(item)) + tail


def memory(server: Server) -> int:
    """Bytes of the server and of its children, what they share counted once."""
    total = 0
    process = psutil.Process(server.process.pid)
    for item in [process, *process.children(recursive=True)]:
        with suppress(psutil.Error):
            total += item.memory_full_info().pss
    return total


def latencies(server: Server, seconds: float) -> np.ndarray:
    """Seconds of each request of one client with one bag, on a connection that is kept."""
    result, connection, end = [], server.connection(), time.monotonic() + seconds
    while time.monotonic() < end:
        begun = time.monotonic()
        status, _ = server.ask("/predict", ONE, connection)
        assert status == 200, status
        result.append(time.monotonic() - begun)
    return np.array(result)


@contextmanager
def beside(*works: Callable[[], None]) -> Iterator[None]:
    """Repeat each work in a thread of its own during the block."""
    over = threading.Event()

    def repeat(work: Callable[[], None]) -> None:
        while not over.is_set():
            with suppress(OSError):
                work()

    threads = [threading.Thread(target=repeat, args=(work,), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    yield
    over.set()


def opened(server: Server, head: str, body: bytes) -> socket.socket:
    """A connection that has sent the head of a request and some of its body."""
    host, _, port = server.place.partition(":")
    client = socket.create_connection((host, int(port)), timeout=90)
    lines = ["POST /predict HTTP/1.1", "Host: x", f"Authorization: Bearer {server.token}", head]
    client.sendall("\r\n".join([*lines, "", ""]).encode() + body)
    return client


def drip(server: Server) -> None:
    """A chunked upload of one byte a second, for ten seconds."""
    with opened(server, "Transfer-Encoding: chunked", b"1\r\n{\r\n") as client:
        for _ in range(10):
            time.sleep(1)
            client.sendall(b"1\r\n \r\n")


def vanish(server: Server, body: bytes) -> None:
    """A client that sends all of its body, and goes."""
    opened(server, f"Content-Length: {len(body)}", body).close()
    time.sleep(1)


def shown(name: str, values: np.ndarray) -> None:
    p50, p99 = 1000 * np.percentile(values, [50, 99])
    print(f"{name}: {len(values)} requests, p50 {p50:.1f} ms, p99 {p99:.1f} ms, "
          f"longest {1000 * values.max():.1f} ms", flush=True)  # fmt: skip


def registered(folder: Path) -> Registry:
    rng = np.random.default_rng(0)
    bags = [rng.random((30, 2)) for _ in range(100)]
    registry = Registry(folder / "registry")
    registry.promote(
        registry.register(DoubleBasisRegressor(alpha=1.0).fit(bags, [bag.mean() for bag in bags]))
    )
    return registry


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--kind", action="append", choices=[*BODIES])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        registry = registered(Path(name))
        server = Server(registry.url, "--token-file", Path(name) / "token")
        latencies(server, 1)
        server.ask("/predict", b'{"bag": [' + b"[1.5,2.5]," * 2**16 + b"[1,2]]}")  # compiles
        idle = memory(server)
        print(f"idle: {idle / 2**20:.0f} MiB; limit of bodies: {ALL_BODIES / 2**20:.0f} MiB")
        for kind in options.kind or BODIES:
            body, peak, over = body_of(kind), [0], threading.Event()

            def watch(peak: list[int] = peak, over: threading.Event = over) -> None:
                while not over.wait(0.1):
                    peak[0] = max(peak[0], memory(server))

            watcher = threading.Thread(target=watch)
            alone = latencies(server, options.seconds)
            shown("alone", alone)
            watcher.start()
            answers: list[int] = []

            def send(body: bytes = body, answers: list[int] = answers) -> None:
                answers.append(server.ask("/predict", body)[0])

            with beside(
                *[send] * (8 if kind in SMALL else 2),
                *[lambda: drip(server)] * 3,
                lambda body=body: vanish(server, body),
            ):
                time.sleep(2)
                loaded = latencies(server, options.seconds)
            over.set()
            watcher.join()
            shown(f"next to {len(body) >> 10:,} KiB of {kind}, slow and vanishing clients", loaded)
            ratio = np.percentile(loaded, 99) / np.percentile(alone, 99)
            above = (peak[0] - idle) / 2**20
            share = above * 2**20 / ALL_BODIES
            print(f"  p99 {ratio:.1f} times that alone; {above:.0f} MiB above idle, "
                  f"{share:.2f} times the limit; answers {answers}", flush=True)  # fmt: skip
        slow = [opened(server, "Transfer-Encoding: chunked", b"1\r\n{\r\n") for _ in range(3)]
        with beside(send, send):
            time.sleep(2)
            begun = time.monotonic()
            server.process.send_signal(signal.SIGTERM)
            server.process.wait()
            print(f"SIGTERM under load: ended after {time.monotonic() - begun:.1f} s")
        for client in slow:
            client.close()


if __name__ == "__main__":
    main()
