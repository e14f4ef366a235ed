"""An S3 that moto plays, over HTTP on loopback."""

from __future__ import annotations

import math
import re
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from werkzeug.serving import WSGIRequestHandler, make_server

REGION = "us-east-1"


def forget_clients() -> None:
    """Let the next filesystem of S3 be a new one, of the environment of then."""
    import s3fs  # half a second

    from bagbasis.data.storage.s3 import CheckedS3

    for filesystem in (s3fs.S3FileSystem, CheckedS3):
        filesystem.clear_instance_cache()


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
        self._times = 0.0
        self._meets: Callable[[str], bool] = lambda request: False

    def __call__(self, environ: Any, start: Callable[..., Any]) -> Iterable[bytes]:
        asked = f"{environ['REQUEST_METHOD']} {environ['PATH_INFO']}?{environ['QUERY_STRING']}"
        if self._page is not None and self._times > 0 and self._meets(asked):
            self._times -= 1
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
    def answering(
        self, status: str, kind: str, body: bytes, pattern: str = "", times: float = math.inf
    ) -> Iterator[None]:
        """Requests like this get this answer, as from something between client and server.

        ``GET /bucket?list-type=2``; the first few alone, or all.
        """
        self._page, self._times = (status, kind, body), times
        self._meets = lambda request: re.search(pattern, request) is not None
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
