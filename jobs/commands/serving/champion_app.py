"""The HTTP application of `bags serve`: answers with the champion of a registry."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from hmac import compare_digest
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from fastapi import FastAPI, HTTPException, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Receive, Scope, Send

from bagbasis import Bags
from bagbasis.bags import as_bags, checked_names
from bagbasis.errors import BagbasisError, ModelError, shown
from bagbasis.registry import Registry

from ...files import plain
from ..model_place import open_model
from ..stores.info import describe_model
from .limits import Room

if TYPE_CHECKING:
    from ..model_place import FittedModel

LOOK_SECONDS = 1.0  # between two looks at who is champion
MAX_BODY = 64 * 2**20  # bytes of a request: some two million coordinates
ALL_BODIES = 2 * MAX_BODY  # read or answered at once; as Python's numbers twelve times as much
LEAST_ROOM = ALL_BODIES // 64  # of a request, so that there are at most so many at once
BODY_SECONDS = 60.0  # for a body to arrive
BODY = {"bag": "one bag: a list of points", "bags": "a list of bags"}
COLUMNS = "columns"  # the key of the names of the coordinates, which may stand beside either

logger = logging.getLogger(__name__)


class Served(NamedTuple):
    """A model and its name. A request is answered by one of them, even if another is promoted."""

    name: str
    model: FittedModel


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
        while not stop.wait(LOOK_SECONDS):
            self.look()

    def _load(self, name: str) -> Served:
        model = open_model(self._registry.model_url(name))
        with suppress(BagbasisError):  # compiles kernels now, not while a client waits
            model.model_.predicted(Bags.from_list([np.zeros((1, model.model_.features.n_dims))]))
        return Served(name, model)


class Guard:
    """Refuses every request without the token."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app, self._expected = app, f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on what has the token; lifespan events are the server's own."""
        given = dict(scope.get("headers", [])).get(b"authorization", b"")
        if scope["type"] != "lifespan" and not compare_digest(given, self._expected):
            refused = {"detail": "send the token: Authorization: Bearer …"}
            await JSONResponse(refused, 401, {"WWW-Authenticate": "Bearer"})(scope, receive, send)
        else:
            await self._app(scope, receive, send)


def make_app(champion: Champion, token: str) -> FastAPI:
    """Return the app: ``GET /health``, ``GET /model``, ``POST /predict``."""

    @asynccontextmanager
    async def following(_: FastAPI) -> AsyncIterator[None]:
        stop = threading.Event()
        threading.Thread(target=champion.follow, args=(stop,), daemon=True).start()
        yield
        stop.set()

    # pages of documentation would load scripts from elsewhere; /openapi.json is there
    app = FastAPI(title="bags serve", lifespan=following, docs_url=None, redoc_url=None)
    app.add_middleware(Guard, token=token)
    room = Room(ALL_BODIES)

    @app.get("/health")
    async def health() -> dict[str, Any]:
        status = "ok" if champion.trouble is None else "stale"
        return {"status": status, "model": champion.served.name, "trouble": champion.trouble}

    @app.get("/model")
    async def model() -> dict[str, Any]:
        served = champion.served
        return {"model": served.name, **plain(describe_model(served.model))}

    properties = {key: {"type": "array"} for key in (*BODY, COLUMNS)}
    schema = {"type": "object", "properties": properties}
    content = {"content": {"application/json": {"schema": schema}}}

    @app.post("/predict", openapi_extra={"requestBody": content})
    async def predict(request: Request) -> JSONResponse:
        async with room.taking(_room_of(request)):
            body = await _body(request)
            try:
                return JSONResponse(await run_in_threadpool(answer, champion.served, body))
            except (BagbasisError, ValueError, RecursionError) as error:
                raise HTTPException(422, str(error)) from error

    return app


def answer(served: Served, body: bytes) -> dict[str, Any]:
    """Return the model's prediction for the bag, or the bags, of a request.

    Raises
    ------
    ValueError
        No JSON, or something else than one bag or a list of bags; `BagbasisError` where bags are
        none, or none of the model's, as by other names of columns; RecursionError for lists in
        lists in lists.
    """
    text = body.decode(json.detect_encoding(body))
    asked = json.loads(text)
    names = asked.pop(COLUMNS, None) if isinstance(asked, dict) else None
    if not isinstance(asked, dict) or len(asked) != 1 or not asked.keys() <= BODY.keys():
        expected = " or ".join(f'{{"{key}": {text}}}' for key, text in BODY.items())
        raise ValueError(
            f"the body is {shown(asked)}; expected {expected}; beside it "
            f'"{COLUMNS}": a list with the name of each coordinate, if they are known'
        )
    if names is not None and ("true" in text or "false" in text):  # a column may be called so
        text = json.dumps(asked)
    if "true" in text or "false" in text:  # numpy would make 1 and 0 of them
        raise ValueError("the body holds true or false; expected numbers")
    single = "bag" in asked
    bags = as_bags([asked["bag"]] if single else asked["bags"])
    if names is not None:
        bags = bags.named(_column_names(names, bags.n_dims))
    found: Mapping[str, Any] = served.model.model_.predicted(bags).arrays()
    rows = {key: array[0] if single else array for key, array in found.items()}
    if single:
        rows["prediction"] = rows.pop("predictions")
    return {"model": served.name, **plain(rows)}


def _column_names(names: object, n_dims: int) -> Sequence[str]:
    """Return the names of the coordinates of a request; ValueError for anything else."""
    if not isinstance(names, list) or checked_names(names, n_dims) is None:
        raise ValueError(
            f'"{COLUMNS}" is {shown(names)}; expected a list of {n_dims} texts, the name of each '
            "coordinate of a point"
        )
    return names


def _room_of(request: Request) -> int:
    """Return the bytes that a request may need; HTTPException 413 for too many."""
    declared = request.headers.get("content-length", "")
    if not declared.isdigit():  # sent in chunks
        return MAX_BODY
    if int(declared) > MAX_BODY:
        raise _too_long()
    return max(LEAST_ROOM, int(declared))


async def _body(request: Request) -> bytes:
    """Read the body of a request; HTTPException for one that is too long, or does not come."""
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for part in request.stream():
                body += part
                if len(body) > MAX_BODY:
                    raise _too_long()
    except ClientDisconnect as gone:
        raise HTTPException(400, "the client went away") from gone
    except TimeoutError as late:
        what = f"the body did not arrive within {BODY_SECONDS:g} seconds; send fewer bags at a time"
        raise HTTPException(408, what) from late
    return bytes(body)


def _too_long() -> HTTPException:
    return HTTPException(413, f"more than {MAX_BODY:,} bytes; send fewer bags at a time")
