"""The HTTP application of `bags serve`: answers with the champion of a registry."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from hmac import compare_digest
from typing import Any, TypeVar

from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bagbasis.core.errors import BagbasisError, ModelError
from bagbasis.execution.worker_threads import one_blas_thread
from bagbasis.operations import Registry

from ...files import plain
from ..model_place import open_model
from ..stores.info import describe_model
from .large_bodies import LargeBodies
from .limits import IS_LARGE, MemoryLimit, QueueFullError, Turns, client_of
from .requests import (
    BODY,
    BODY_COLUMNS,
    MAX_SMALL_VALUES,
    LargeAnswerError,
    Served,
    answer_request,
    check_form,
    reason_of,
    warm,
)

_T = TypeVar("_T")

_POLL_SECONDS = 1.0  # interval at which the champion is looked up
MAX_BODY = 64 * 2**20  # bytes of a request: some ten million coordinates
SMALL_BODY = 2**18  # bytes of a body that the server itself answers
MAX_LARGE = 2  # larger bodies that are read or answered at once; further ones wait
# Clients with a large body that wait; each has sent little more than a small one.
MAX_WAITING_LARGE = 32
SMALL_MEMORY = 2**26  # bytes that all small bodies together may take as Python numbers
# Counted for each request, which limits how many run at once.
MIN_REQUEST_BYTES = SMALL_MEMORY // 64
MAX_REQUEST_BYTES = SMALL_MEMORY // 4  # counted for a body that the server itself answers
# of a body as Python's numbers and NumPy's arrays: of each byte, and of each list besides
MEMORY_OF_BYTE, MEMORY_OF_LIST = 36, 480
ALL_BODIES = MAX_LARGE * MAX_BODY
BODY_SECONDS = 60.0  # timeout for a body to arrive, and for a large answer to be read
SLOW_SECONDS = 10.0  # how far a large body or answer may be behind the least rate
MIN_RATE = 2**20  # bytes a second of a large body or answer, which occupies one slot meanwhile
ANSWER_BYTES = 2**18  # bytes of a large answer written at once
RETRY_SECONDS = 10

logger = logging.getLogger(__name__)


class Champion:
    """The champion of a registry, loaded again when another model is promoted.

    If the registry or a new champion cannot be read, the last champion stays.

    Attributes
    ----------
    served : Served
    trouble : str or None
        Why the last look did not tell who is champion.

    Raises
    ------
    ModelError
        There is no champion, or it cannot be read.
    """

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        name = registry.current()
        if name is None:
            raise ModelError(f"{registry.url}: no model was promoted; register and promote one")
        self.served = self._load(name)
        self.trouble: str | None = None

    def look(self) -> None:
        """Load the champion if it has changed."""
        trouble = None
        try:
            name = self._registry.current()
            if name is not None and name != self.served.name:
                self.served = self._load(name)
                logger.info("%s: serving %s", self._registry.url, name)
        except Exception as error:  # whatever goes wrong, the last champion goes on answering
            trouble = str(error)
            if trouble != self.trouble:
                logger.warning("%s is served still: %s", self.served.name, trouble)
        self.trouble = trouble

    def follow(self, stop: threading.Event) -> None:
        """Look again and again, until the event is set."""
        while not stop.wait(_POLL_SECONDS):
            self.look()

    def _load(self, name: str) -> Served:
        url = self._registry.model_url(name)
        model = open_model(url)
        return Served(name, model, url, warm(model))


class Guard:
    """Refuses every request without the token, and those that the end of the server cancels."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app, self._expected = app, f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on what has the token; lifespan events are the server's own."""
        token = dict(scope.get("headers", [])).get(b"authorization", b"")
        if scope["type"] != "lifespan" and not compare_digest(token, self._expected):
            refused = {"detail": "send the token: Authorization: Bearer …"}
            await JSONResponse(refused, 401, {"WWW-Authenticate": "Bearer"})(scope, receive, send)
        elif {b"content-length", b"transfer-encoding"} <= dict(scope.get("headers", [])).keys():
            # one server sees another end of the body than the next: what follows it is not read
            twice = {"detail": "send Content-Length or Transfer-Encoding, not both"}
            await JSONResponse(twice, 400, {"Connection": "close"})(scope, receive, send)
        else:
            await self._pass_on(scope, receive, send)

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_begun = False

        async def noted(message: Message) -> None:
            nonlocal is_begun
            is_begun = True
            await send(message)

        try:
            await self._app(scope, receive, noted)
        except asyncio.CancelledError:  # the seconds to end are over
            if scope["type"] == "lifespan":
                raise
            if not is_begun:
                ends = {"detail": "the server ends; send the request to the next one"}
                await JSONResponse(ends, 503)(scope, receive, send)


def make_app(champion: Champion, token: str) -> FastAPI:
    """Return the app: ``GET /health``, ``GET /model``, ``POST /predict``."""

    @asynccontextmanager
    async def following(_: FastAPI) -> AsyncIterator[None]:
        stop = threading.Event()
        threading.Thread(target=champion.follow, args=(stop,), daemon=True).start()
        large.start()
        with one_blas_thread():  # once: setting and restoring it takes a fifth of a small answer
            yield
        stop.set()
        large.end()

    # pages of documentation would load scripts from elsewhere; /openapi.json is there
    app = FastAPI(title="bags serve", lifespan=following, docs_url=None, redoc_url=None)
    app.add_middleware(Guard, token=token)
    turns, large = Turns(MAX_LARGE, MAX_WAITING_LARGE), LargeBodies()
    predictions = _Predictions(champion, MemoryLimit(SMALL_MEMORY), turns, large)

    @app.get("/health")
    async def health() -> dict[str, Any]:
        status = "ok" if champion.trouble is None else "stale"
        return {"status": status, "model": champion.served.name, "trouble": champion.trouble}

    @app.get("/model")
    async def model() -> dict[str, Any]:
        served = champion.served
        return {"model": served.name, **plain(describe_model(served.model))}

    properties = {key: {"type": "array"} for key in (*BODY, BODY_COLUMNS)}
    schema = {"type": "object", "properties": properties}
    content = {"content": {"application/json": {"schema": schema}}}

    @app.post("/predict", openapi_extra={"requestBody": content})
    async def predict() -> Response:
        return Answer(predictions.respond)

    return app


class Answer(Response):
    """The answer to a request, which holds its place until the client has read it."""

    def __init__(self, respond: Callable[[Request, Send], Awaitable[None]]) -> None:
        super().__init__()
        self._respond = respond

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Make the answer, and send it."""
        await self._respond(Request(scope, receive), send)


class _Predictions:
    """Answers to `POST /predict`: small ones by the server itself, others by a process of theirs.

    Parameters
    ----------
    champion : Champion
    memory : MemoryLimit
        For small bodies.
    turns : Turns
        Turns of large bodies, and of large answers to small ones.
    large : LargeBodies
    """

    def __init__(
        self, champion: Champion, memory: MemoryLimit, turns: Turns, large: LargeBodies
    ) -> None:
        self._champion, self._memory, self._turns, self._large = champion, memory, turns, large

    async def respond(self, request: Request, send: Send) -> None:
        """Read the body of a request, and send the answer to it; HTTPException if it is refused."""
        refused = check_form(request.headers)
        if refused is not None:
            raise HTTPException(415, refused)
        async with AsyncExitStack() as turn:
            body = await _body(request, self._turns, turn)
            served = self._champion.served
            if len(body) <= SMALL_BODY:
                with suppress(LargeAnswerError):
                    if memory_of(body) <= MAX_REQUEST_BYTES:
                        return await self._small(served, body, request, send)
                await _take(self._turns, request, turn)
            try:
                work = self._large.answer(served.name, served.url, body)
                status, content = await _unless_gone(request, work)
            except ConnectionError as error:
                raise HTTPException(503, f"{error}; send fewer bags at a time") from error
            await _send_at_least_rate(request, send, status, content)

    async def _small(self, served: Served, body: bytearray, request: Request, send: Send) -> None:
        async with self._memory.taking(memory_of(body)):
            try:
                values = await run_in_threadpool(answer_request, served, body, MAX_SMALL_VALUES)
            except (BagbasisError, ValueError, RecursionError) as error:
                raise HTTPException(422, reason_of(error)) from error
        await JSONResponse(values)(request.scope, request.receive, send)


def memory_of(body: bytearray) -> int:
    """Return the memory that is reserved for a small body: about the most that its answer needs."""
    n_bytes = MEMORY_OF_BYTE * len(body) + MEMORY_OF_LIST * body.count(b"[")
    return max(MIN_REQUEST_BYTES, n_bytes)


async def _send_at_least_rate(request: Request, send: Send, status: int, content: bytes) -> None:
    """Send a large answer, which holds a turn; drop the connection if the client reads slowly."""
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(content)).encode()),
    ]
    try:
        async with asyncio.timeout(min(BODY_SECONDS, SLOW_SECONDS + len(content) / MIN_RATE)):
            await send({"type": "http.response.start", "status": status, "headers": headers})
            for start in range(0, len(content), ANSWER_BYTES):
                piece = content[start : start + ANSWER_BYTES]
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
    except TimeoutError:
        client_of(request.scope["state"]).transport.abort()
        await _gone(request)


async def _unless_gone(request: Request, work: Coroutine[Any, Any, _T]) -> _T:
    """Return the result of work, which is cancelled if its client goes away."""
    tasks = [asyncio.ensure_future(work), asyncio.ensure_future(_gone(request))]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if tasks[1].done():
            raise HTTPException(400, "the client went away")
        return tasks[0].result()  # type: ignore[return-value]
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _gone(request: Request) -> None:
    """Wait until the client has gone; there is nothing else for it to send."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _body(request: Request, turns: Turns, stack: AsyncExitStack) -> bytearray:
    """Read the body of a request; HTTPException for one that is too long, or does not come.

    A large one takes a turn once so much of it is there, not before: whoever sends little, however
    slowly, keeps nobody waiting. From then on it has to come at a least rate, so that whoever sends
    slowly holds a turn for seconds. The time before its turn does not count.
    """
    declared = request.headers.get("content-length", "")
    if declared.isdigit() and int(declared) > MAX_BODY:
        raise _too_long()
    body, is_large, taken = bytearray(), False, 0.0
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(BODY_SECONDS) as limit:
            async for part in request.stream():
                body += part
                if len(body) > MAX_BODY:
                    raise _too_long()
                if len(body) > SMALL_BODY and not is_large:
                    limit.reschedule(None)
                    await _take(turns, request, stack)
                    is_large, taken = True, loop.time()
                if is_large:
                    seconds = SLOW_SECONDS + (len(body) - SMALL_BODY) / MIN_RATE
                    limit.reschedule(taken + min(BODY_SECONDS, seconds))
    except ClientDisconnect as gone:
        raise HTTPException(400, "the client went away") from gone
    except TimeoutError as late:
        what = f"the body did not arrive within {BODY_SECONDS:g} seconds; send fewer bags at a time"
        if is_large:
            what = (
                f"the body came too slowly; send at least {MIN_RATE:,} bytes a second, or at "
                f"most {SMALL_BODY:,} bytes at a time"
            )
        raise HTTPException(408, what, {"Connection": "close"}) from late
    return body


async def _take(turns: Turns, request: Request, stack: AsyncExitStack) -> None:
    """Wait for a turn of large bodies; HTTPException 503 if too many wait, 400 if it has gone."""
    state = request.scope["state"]
    state[IS_LARGE] = True
    try:
        await stack.enter_async_context(turns.taking(client_of(state).is_gone))
    except QueueFullError as busy:
        what = f"{MAX_WAITING_LARGE} other large bodies wait to be answered; try again later"
        raise HTTPException(503, what, {"Retry-After": str(RETRY_SECONDS)}) from busy
    except ConnectionError as gone:
        raise HTTPException(400, str(gone)) from gone


def _too_long() -> HTTPException:
    return HTTPException(413, f"more than {MAX_BODY:,} bytes; send fewer bags at a time")
