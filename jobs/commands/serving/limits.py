"""Limits of `bags serve`: how long a client may take, and how much all of them may have sent."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS = 10.0  # for the head of a request, and for the rest of a body that nobody reads
MOST_WAITING = 256  # connections without a request; Linux gives a process 1,024 files


class PromptProtocol(H11Protocol):
    """Closes a connection whose client does not finish sending what it has begun.

    Every account of the machine reaches its loopback, and the token is known only when a request's
    head is there. So strangers may hold connections, but each for seconds, and not all of them:
    if there are too many, the one that has waited longest is closed.

    Attributes
    ----------
    deadline : asyncio.TimerHandle or None
        When the connection is closed; None while the server owes an answer.
    """

    deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        super().connection_made(transport)
        # Head and body of an answer are sent apart: without this the second waits 40 ms for the
        # client to acknowledge the first. asyncio sets it only for sockets made with a protocol.
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._watch()
        waiting = {
            other: other.deadline.when()
            for other in self.connections
            if isinstance(other, PromptProtocol) and other.deadline is not None
        }
        if len(waiting) > MOST_WAITING:
            min(waiting, key=waiting.__getitem__).transport.abort()

    def data_received(self, data: bytes) -> None:
        """Take what the client has sent."""
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        """Begin to wait for the next request, or for the rest of a body that was refused."""
        super().on_response_complete()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        super().connection_lost(exc)
        self._stop_watching()

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


class Room:
    """Bytes that the bodies of all requests may have at the same time.

    Parameters
    ----------
    n_bytes : int
        No request may ask for more.
    """

    def __init__(self, n_bytes: int) -> None:
        self._free = n_bytes
        self._turn = asyncio.Lock()  # first come, first served: small bodies do not keep out large
        self._freed = asyncio.Event()

    @asynccontextmanager
    async def taking(self, n_bytes: int) -> AsyncIterator[None]:
        """Wait until so many bytes are free, and take them for the block."""
        async with self._turn:
            while self._free < n_bytes:
                self._freed.clear()
                await self._freed.wait()
            self._free -= n_bytes
        try:
            yield
        finally:
            self._free += n_bytes
            self._freed.set()
