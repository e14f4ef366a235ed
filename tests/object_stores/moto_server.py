"""An S3 that moto plays, over HTTP on loopback."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from werkzeug.serving import WSGIRequestHandler, make_server

REGION = "us-east-1"


class Quiet(WSGIRequestHandler):
    """Does not log every request."""

    def log_request(self, *args: Any) -> None:
        pass


class OneAtATime:
    """moto's application, each request answered as a whole: a conditional PUT is one step, as
    with S3.

    Its own dispatcher lists all services for every request, a third of the time of one.
    """

    def __init__(self) -> None:
        from moto.server import create_backend_app  # nearly a second of CPU

        self._s3, self._control = map(create_backend_app, ("s3", "moto_api"))
        self._lock = threading.Lock()
        self._lost: Callable[[str], bool] = lambda request: False
        self._done = False
        self._page: tuple[str, str, bytes] | None = None

    def __call__(self, environ: Any, start: Callable[..., Any]) -> Iterable[bytes]:
        if self._page is not None:
            status, kind, body = self._page
            start(status, [("Content-Type", kind), ("Content-Length", str(len(body)))])
            return [] if environ["REQUEST_METHOD"] == "HEAD" else [body]
        lost = self._lost(f"{environ['REQUEST_METHOD']} {environ['PATH_INFO']}")
        answer: list[bytes] = []
        app = self._control if environ["PATH_INFO"].startswith("/moto-api/") else self._s3
        with self._lock:
            if not lost or self._done:
                answer = list(app(environ, start))
            else:
                start("503 Service Unavailable", [])
        if lost:
            environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
        return answer

    @contextmanager
    def answering(self, status: str, kind: str, body: bytes) -> Iterator[None]:
        """Every request gets this answer, as from something between client and server."""
        self._page = status, kind, body
        try:
            yield
        finally:
            self._page = None

    @contextmanager
    def losing(self, pattern: str, done: bool = False) -> Iterator[None]:
        """The connection breaks off at every request like this, ``PUT /bucket/key``.

        ``done`` says whether the server does what it was asked before.
        """
        self._done = done
        self._lost = lambda request: re.search(pattern, request) is not None
        try:
            yield
        finally:
            self._lost = lambda request: False


@contextmanager
def serving(app: OneAtATime) -> Iterator[dict[str, str]]:
    """The server, on a free port; yields the environment in which ``s3://`` leads to it."""
    server = make_server("127.0.0.1", 0, app, threaded=True, request_handler=Quiet)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.server_port}",
            "AWS_ACCESS_KEY_ID": "moto",
            "AWS_SECRET_ACCESS_KEY": "moto",
            "AWS_DEFAULT_REGION": REGION,
            "AWS_EC2_METADATA_DISABLED": "true",
        }
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
