"""Clients of ``bags serve`` that are slow, send half of what they say, do not read, or go away.

Next to them a client with one bag has to get the numbers of the champion, whatever the others do.
"""

from __future__ import annotations

import json
import signal
import socket
import subprocess
from collections.abc import Callable
from contextlib import suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path

import numpy as np

from bagbasis import DoubleBasisRegressor
from bagbasis.operations import Registry
from tests.chaos.accounting import Campaign, Stuck, Tally, Wrong
from tests.jobs.serving import Server

PATIENCE = 60.0  # seconds for an answer to one bag
END_SECONDS = 30.0  # from SIGTERM to the end of the server
MAX_CLIENTS = 12  # of a trial
LARGE_BYTES = 2**20  # enough for a process of its own
BAG = [[0.1, 0.6], [0.3, 0.9]]
ONE = json.dumps({"bag": BAG}).encode()
MANY = json.dumps({"bags": [[[0.1, 0.2]]] * 3000}).encode()
ENDINGS = 0.25  # share of the trials after which the server is ended, the clients still there


class Connection:
    """A client that has begun a request with a token.

    Parameters
    ----------
    server : Server
    head : bytes
        Header lines besides those that every request has.
    """

    def __init__(self, server: Server, head: bytes) -> None:
        host, _, port = server.place.partition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=PATIENCE)
        token = server.token.encode()
        start = b"POST /predict HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %b\r\n" % token
        self.send(start + head)

    def send(self, content: bytes) -> None:
        """Send bytes; a server that has closed the connection may refuse them."""
        with suppress(OSError):
            self.socket.sendall(content)


def half_a_head(server: Server, rng: np.random.Generator) -> Connection:
    return Connection(server, b"Content-Le")


def half_a_body(server: Server, rng: np.random.Generator) -> Connection:
    body = b'{"bag": [' + b"[1.5,2.5]," * int(rng.integers(1, LARGE_BYTES // 10))
    client = Connection(server, b"Content-Length: %d\r\n\r\n" % (2 * len(body)))
    client.send(body)
    return client


def chunks(server: Server, rng: np.random.Generator) -> Connection:
    client = Connection(server, b"Transfer-Encoding: chunked\r\n\r\n")
    for _ in range(rng.integers(1, 4)):
        client.send(b"1\r\n \r\n")
    return client


def wrong_chunks(server: Server, rng: np.random.Generator) -> Connection:
    client = Connection(server, b"Transfer-Encoding: chunked\r\n\r\n")
    client.send(bytes(rng.integers(0, 256, 50, dtype=np.uint8)))
    return client


def unread(server: Server, rng: np.random.Generator) -> Connection:
    client = Connection(server, b"Content-Length: %d\r\n\r\n" % len(MANY))
    client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.send(MANY)
    return client


def large(server: Server, rng: np.random.Generator) -> Connection:
    body = b'{"bag": [' + b"[1.5,2.5]," * (LARGE_BYTES // 10) + b"[1,2]]}"
    client = Connection(server, b"Content-Length: %d\r\n\r\n" % len(body))
    client.send(body)
    return client


def half_closed(server: Server, rng: np.random.Generator) -> Connection:
    client = Connection(server, b"Content-Length: %d\r\n\r\n" % len(ONE))
    client.send(ONE[: rng.integers(len(ONE) + 1)])
    with suppress(OSError):
        client.socket.shutdown(socket.SHUT_WR)
    return client


KINDS: tuple[Callable[[Server, np.random.Generator], Connection], ...] = (
    half_a_head,
    half_a_body,
    chunks,
    wrong_chunks,
    unread,
    large,
    half_closed,
)


class Clients(Campaign):
    """Trials of some bad clients at once, some of which stay and some of which go away."""

    name = "clients"

    def begin(self, folder: Path) -> None:
        rng = np.random.default_rng(0)
        bags = [rng.random((12, 2)) for _ in range(60)]
        model = DoubleBasisRegressor(alpha=1.0).fit(bags, [bag.mean() for bag in bags])
        registry = Registry(folder / "registry")
        registry.promote(registry.register(model))
        self._expected = float(registry.load_current().predict([np.array(BAG)])[0])
        self._url = registry.url
        self._server = Server(self._url)
        self._ask(self._server)

    def trial(self, rng: np.random.Generator, folder: Path, tally: Tally) -> None:
        clients = []
        try:
            for _ in range(rng.integers(1, MAX_CLIENTS + 1)):
                client = KINDS[rng.integers(len(KINDS))](self._server, rng)
                tally.kills += 1
                if rng.random() < 0.5:
                    client.socket.close()
                else:
                    clients.append(client)
                if rng.random() < 0.3:
                    self._ask(self._server)
            self._ask(self._server)
            if rng.random() < ENDINGS:
                self._end()
                self._server = Server(self._url)
        finally:
            for client in clients:
                client.socket.close()
        self._ask(self._server)

    def end(self) -> None:
        if hasattr(self, "_server"):
            self._server.process.kill()
            self._server.process.communicate()

    def _ask(self, server: Server) -> None:
        """Raise a fault where one bag is not predicted as the champion predicts it."""
        connection = HTTPConnection(server.place, timeout=PATIENCE)
        try:
            status, answer = server.ask("/predict", ONE, connection)
        except TimeoutError as error:
            raise Stuck(f"one bag has no answer after {PATIENCE:.0f} s") from error
        except (OSError, HTTPException, ValueError) as error:
            raise Wrong(f"one bag: {type(error).__name__}: {error}") from error
        finally:
            connection.close()
        if status != 200 or answer["prediction"] != self._expected:
            raise Wrong(f"one bag: {status}, {answer}, expected {self._expected}")

    def _end(self) -> None:
        """End the server by SIGTERM, as a service manager does."""
        self._server.process.send_signal(signal.SIGTERM)
        try:
            self._server.process.communicate(timeout=END_SECONDS)
        except subprocess.TimeoutExpired as error:
            self._server.process.kill()
            raise Stuck(f"the server has not ended {END_SECONDS:.0f} s after SIGTERM") from error


CAMPAIGNS = (Clients(),)
