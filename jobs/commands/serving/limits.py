"""Limits of `bags serve`: how long a client may take, and how much all of them may have sent."""

from __future__ import annotations

import asyncio
import json
import select
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

# Timeout for the head of a request, and for the rest of a body that nobody reads.
HEAD_SECONDS = 10.0
UNREAD_SECONDS = 10.0  # how long a client may leave an answer unread
MAX_WAITING = 256  # connections without a request; Linux gives a process 1,024 files


CLIENT = "client"  # key of a request's state: its `PromptProtocol`
# Key in a request's state: its work is cancelled if the client closes the connection.
IS_LARGE = "is_large"


class PromptProtocol(H11Protocol):
    """Closes a connection whose client does not finish sending what it has begun, or does not read.

    Every account of the machine reaches its loopback, and the token is known only when a request's
    head is there. So strangers may hold connections, but each for seconds, and not all of them:
    if there are too many, the one that has waited longest is closed.

    A client may close its side of the connection once its request is whole, and is answered still.
    A request that is cut off gets 400. So does a large one, whose client has to stay: whether it
    has gone cannot be told from its closing its side.

    Attributes
    ----------
    deadline : asyncio.TimerHandle or None
        When the connection is closed; None while the server owes an answer.
    """

    deadline: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None
    _is_ended = False  # the client sends no more

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        super().connection_made(transport)
        self.app_state = {**self.app_state, CLIENT: self}
        # Head and body of an answer are sent apart: without this the second waits 40 ms for the
        # client to acknowledge the first. asyncio sets it only for sockets made with a protocol.
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._watch()
        waiting = {
            other: other.deadline.when()
            for other in self.connections
            if isinstance(other, PromptProtocol) and other.deadline is not None
        }
        if len(waiting) > MAX_WAITING:
            min(waiting, key=waiting.__getitem__).transport.abort()

    def data_received(self, data: bytes) -> None:
        """Take what the client has sent."""
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        """Begin to wait for the next request, or for the rest of a body that was refused."""
        super().on_response_complete()
        self._watch()
        if self._is_ended and not self.transport.is_closing() and not self._owes():
            self.transport.close()

    def eof_received(self) -> bool | None:  # type: ignore[override]
        """Return whether to keep the connection open, for the answer to a request that is whole."""
        self._is_ended = True
        # TLS ends in both directions at once
        return None if self.scheme == "https" else self._owes() or None

    def _owes(self) -> bool:
        """Return whether a whole request is being answered; refuse what the client has cut off."""
        cycle = self.cycle
        if cycle is None or cycle.response_complete:
            if self.conn.their_state is h11.IDLE and self.conn.trailing_data[0]:
                self.send_400_response("the request was cut off within its head; send it again")
            return False
        if cycle.more_body:
            self.send_400_response("the body was cut off; send the request again")
        elif cycle.scope["state"].get(IS_LARGE):
            self.send_400_response(
                "the connection was closed before the answer to a large body; keep it open"
            )
        else:
            return True
        return False

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP, with the reason as JSON, and close the connection."""
        reason = sys.exc_info()[1]
        if isinstance(reason, h11.RemoteProtocolError):
            msg = f"the request is not valid HTTP: {reason}"
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True  # the app's answer would be a second one
            self.cycle.message_event.set()
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            content = json.dumps({"detail": msg}).encode()
            headers = [
                (b"content-type", b"application/json"),
                (b"content-length", str(len(content)).encode()),
                (b"connection", b"close"),
            ]
            answer = h11.Response(status_code=400, headers=headers, reason=b"Bad Request")
            for event in (answer, h11.Data(data=content), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def pause_writing(self) -> None:
        """Give the client its seconds to read."""
        super().pause_writing()
        if self._unread is None:
            self._unread = self.loop.call_later(UNREAD_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """Go on, as the client has read."""
        super().resume_writing()
        self._stop_unread()

    def is_gone(self) -> bool:
        """Return whether the client has closed its side, even if not all that it sent is read."""
        if self._is_ended or self.transport.is_closing():
            return True
        poll = select.poll()
        poll.register(self.transport.get_extra_info("socket").fileno(), select.POLLRDHUP)
        return bool(poll.poll(0))

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        super().connection_lost(exc)
        self.app_state = {}
        self._stop_watching()
        self._stop_unread()

    def _watch(self) -> None:
        """Give the client its seconds if it is its turn; further bytes give it no more."""
        is_answered = self.cycle is None or self.cycle.response_complete
        is_unfinished = self.conn.their_state in (h11.IDLE, h11.SEND_BODY)
        if not (is_answered and is_unfinished):
            self._stop_watching()
        elif self.deadline is None:
            self.deadline = self.loop.call_later(HEAD_SECONDS, self.transport.abort)

    def _stop_watching(self) -> None:
        if self.deadline is not None:
            self.deadline.cancel()
            self.deadline = None

    def _stop_unread(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None


class MemoryLimit:
    """Bytes that the bodies of all requests may have at the same time.

    Parameters
    ----------
    n_bytes : int
        No request may ask for more.
    """

    def __init__(self, n_bytes: int) -> None:
        self.free = n_bytes
        self._turn = asyncio.Lock()  # first come, first served: small bodies do not keep out large
        self._freed = asyncio.Event()

    @asynccontextmanager
    async def taking(self, n_bytes: int) -> AsyncIterator[None]:
        """Wait until so many bytes are free, and take them for the block."""
        async with self._turn:
            while self.free < n_bytes:
                self._freed.clear()
                await self._freed.wait()
            self.free -= n_bytes
        try:
            yield
        finally:
            self.free += n_bytes
            self._freed.set()


class QueueFullError(Exception):
    """As many clients wait for a turn as may wait."""


class Turns:
    """Turns of large bodies, in order of arrival. Whoever has gone meanwhile takes none.

    Parameters
    ----------
    n_at_once : int
        Turns that may be taken at the same time.
    max_waiting : int
        Clients that may wait for one.
    """

    def __init__(self, n_at_once: int, max_waiting: int) -> None:
        self.free = n_at_once
        self._max_waiting = max_waiting
        self.waiting: dict[asyncio.Future[None], Callable[[], bool]] = {}

    @asynccontextmanager
    async def taking(self, is_gone: Callable[[], bool]) -> AsyncIterator[None]:
        """Wait for a turn, and take it for the block.

        Raises
        ------
        QueueFullError
            Too many wait, and none of them has gone.
        ConnectionError
            The client has gone.
        """
        if self.free:
            self.free -= 1
        else:
            await self._wait(is_gone)
        try:
            yield
        finally:
            self._release()

    async def _wait(self, is_gone: Callable[[], bool]) -> None:
        if len(self.waiting) >= self._max_waiting:
            for turn, has_gone in [*self.waiting.items()]:
                if has_gone():
                    self._dismiss(turn)
        if len(self.waiting) >= self._max_waiting:
            raise QueueFullError
        turn = asyncio.get_running_loop().create_future()
        self.waiting[turn] = is_gone
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self._release()  # it was handed over at the same moment
            raise
        finally:
            self.waiting.pop(turn, None)

    def _dismiss(self, turn: asyncio.Future[None]) -> None:
        del self.waiting[turn]
        turn.set_exception(ConnectionError("the client went away"))

    def _release(self) -> None:
        """Hand a turn to the first that waits and is there."""
        while self.waiting:
            turn, is_gone = next(iter(self.waiting.items()))
            if turn.done():  # cancelled
                del self.waiting[turn]
            elif is_gone():
                self._dismiss(turn)
            else:
                del self.waiting[turn]
                turn.set_result(None)
                return
        self.free += 1


def client_of(state: dict[str, Any]) -> PromptProtocol:
    """Return the connection that a request came by, from the state of its scope."""
    client: PromptProtocol = state[CLIENT]
    return client
