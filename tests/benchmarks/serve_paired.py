"""`bags serve` of this tree and of another, in turn: one client, and fifty at once.

``python -m tests.benchmarks.serve_paired OTHER/.venv/bin/python [--rounds 40] [--requests 300]``:
the other Python makes the registry, both servers answer with its model, and each round asks one
after the other. Prints medians and quartiles over the rounds of the ratios ours / other: of the
seconds of a request, and of the server's CPU seconds, which other processes change less.
"""

from __future__ import annotations

import argparse
import json
import selectors
import socket
import subprocess
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import psutil

from tests.jobs.serving import Server, serving

SIZES = (20, 500)  # points of the bag of a request
CLIENTS = (1, 50)
MAKING = """
import sys
import numpy as np
from bagbasis import DoubleBasisRegressor, ProjectionEmbedding, RandomFourierFeatures
try:
    from bagbasis.operations import Registry
except ImportError:
    from bagbasis.registry import Registry
rng = np.random.default_rng(0)
bags = [rng.random((200, 2)).round(4) for _ in range(500)]
model = DoubleBasisRegressor(
    ProjectionEmbedding(), RandomFourierFeatures(n_features=2048, seed=0), alpha=1.0
)
registry = Registry(sys.argv[1])
registry.promote(registry.register(model.fit(bags, [bag.mean() for bag in bags])))
"""


def asked(server: Server, body: bytes, n_clients: int, n_requests: int) -> tuple[float, float]:
    """Ask again and again on kept connections: seconds, and the server's CPU, of a request."""
    host, _, port = server.place.partition(":")
    lines = [
        "POST /predict HTTP/1.1",
        f"Host: {server.place}",
        f"Authorization: Bearer {server.token}",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
    ]
    request = "\r\n".join([*lines, "", ""]).encode() + body
    process = psutil.Process(server.process.pid)
    with ExitStack() as stack, selectors.DefaultSelector() as ready:
        for _ in range(n_clients):
            client = stack.enter_context(socket.create_connection((host, int(port))))
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            ready.register(client, selectors.EVENT_READ, bytearray())
            client.sendall(request)
        n, cpu, begun = 0, sum(process.cpu_times()[:2]), time.monotonic()
        while n < n_requests:
            for key, _ in ready.select():
                key.data.extend(key.fileobj.recv(2**16))
                head, result, content = key.data.partition(b"\r\n\r\n")
                if not result or len(content) < length_of(head):
                    continue
                assert head.startswith(b"HTTP/1.1 200 "), bytes(key.data)
                key.data.clear()
                n += 1
                key.fileobj.sendall(request)
        took = time.monotonic() - begun
        return took / n, (sum(process.cpu_times()[:2]) - cpu) / n


def length_of(head: bytes) -> int:
    """Return how many bytes the content of an answer has."""
    return int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("python", type=Path)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--requests", type=int, default=300)
    options = parser.parse_args()
    rng = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        url = f"{name}/registry"
        subprocess.run([options.python, "-c", MAKING, url], check=True, cwd=name)
        servers = [
            stack.enter_context(serving(url, "--token-file", f"{name}/token", **python))
            for python in ({}, {"python": options.python})
        ]
        for n_points in SIZES:
            body = json.dumps({"bag": rng.random((n_points, 2)).round(4).tolist()}).encode()
            answers = [server.ask("/predict", body) for server in servers]
            assert np.allclose(*(answer[1]["prediction"] for answer in answers), rtol=1e-6), answers
            for n_clients in CLIENTS:
                values = []
                for i in range(options.rounds + 1):
                    pair = [asked(s, body, n_clients, options.requests)
                            for s in (servers if i % 2 else servers[::-1])]  # fmt: skip
                    values.append(pair if i % 2 else pair[::-1])
                ours, other = np.array(values[1:]).swapaxes(0, 1)
                for i, what in enumerate(("wall", "CPU")):
                    low, median, high = np.percentile(ours[:, i] / other[:, i], [25, 50, 75])
                    both = [1000 * np.median(item[:, i]) for item in (ours, other)]
                    print(
                        f"{n_points:>4} points, {n_clients:>2} clients, {what:>4} of a request: "
                        f"{both[0]:.2f} and {both[1]:.2f} ms, ratio {median:.3f} "
                        f"({low:.3f} to {high:.3f})",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
