"""What `bags serve` gives a client: seconds for what it has begun, and room for its body."""

from __future__ import annotations

import asyncio
import socket
from contextlib import asynccontextmanager, suppress
from types import SimpleNamespace

import pytest
from uvicorn import Config
from uvicorn.server import ServerState

from bagbasis.jobs.commands.serving import champion_app, limits as serving_limits
from bagbasis.jobs.commands.serving.champion_app import ALL_BODIES, MAX_BODY, make_app
from bagbasis.jobs.commands.serving.limits import PromptProtocol, Room

TOKEN = "0123456789abcdef"
HEADERS = [(b"authorization", f"Bearer {TOKEN}".encode())]


async def hello(scope, receive, send):
    """Answer without reading the body."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"hello"})


@asynccontextmanager
async def listening():
    """The state of a server in this loop, and a function that connects to it."""
    config, state = Config(hello, log_config=None, lifespan="off"), ServerState()
    loop = asyncio.get_running_loop()
    listener = socket.create_server(("127.0.0.1", 0))
    server = await loop.create_server(lambda: PromptProtocol(config, state, {}), sock=listener)
    clients = []

    async def connect(sent=b""):
        reader, writer = await asyncio.open_connection(*listener.getsockname())
        clients.append(writer)
        writer.write(sent)
        return reader, writer

    async with server:
        yield state, connect
        for writer in clients:
            writer.close()


REQUEST = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n"


def test_answers_are_not_held_back():
    """Head and body of an answer are two packets: the second does not wait for an ACK."""

    async def look():
        async with listening() as (state, connect):
            reader, _ = await connect(REQUEST + b"body")
            await reader.readuntil(b"hello")
            (connection,) = state.connections
            accepted = connection.transport.get_extra_info("socket")
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1

    asyncio.run(look())


@pytest.mark.parametrize("sent", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: x\r\n", REQUEST])
def test_unfinished_requests_are_closed(sent, monkeypatch):
    """Silence, half a head, a body that was not waited for: the connection ends by itself."""
    monkeypatch.setattr(serving_limits, "HEAD_SECONDS", 0.01)

    async def wait():
        async with listening() as (state, connect):
            reader, _ = await connect(sent)
            with suppress(ConnectionResetError):
                await reader.read()
            assert not state.connections

    asyncio.run(wait())


def test_bytes_that_drip_in_buy_no_time(monkeypatch):
    """The seconds count from the first wait on, not from the last byte."""
    monkeypatch.setattr(serving_limits, "HEAD_SECONDS", 1e6)

    async def drip():
        async with listening() as (state, connect):
            _, writer = await connect(b"G")
            while not state.connections:
                await asyncio.sleep(0)
            (connection,) = state.connections
            deadline = connection.deadline
            for byte in (b"E", b"T", b" "):
                connection.data_received(byte)
            assert connection.deadline is deadline is not None
            connection.data_received(b"/ HTTP/1.1\r\nHost: x\r\n\r\n")
            assert connection.deadline is None  # the server's turn
            assert deadline.cancelled()
            writer.close()

    asyncio.run(drip())


def test_the_longest_silence_makes_way(monkeypatch):
    """Of too many connections without a request the oldest is closed, and the new one answered."""
    monkeypatch.setattr(serving_limits, "MOST_WAITING", 3)

    async def crowd():
        async with listening() as (state, connect):
            silent = []
            for k in range(3):
                silent.append(await connect())
                while len(state.connections) <= k:
                    await asyncio.sleep(0)
            reader, _ = await connect(REQUEST + b"body")
            await reader.readuntil(b"hello")
            assert await silent[0][0].read() == b""
            assert len(state.connections) == 3

    asyncio.run(crowd())


def test_room_is_shared_in_order():
    """What does not fit waits, and what came later waits behind it."""

    async def share():
        room, order = Room(10), []
        inside = asyncio.Event()

        async def take(name, size):
            async with room.taking(size):
                order.append(name)
                await inside.wait()

        tasks = [asyncio.ensure_future(take(*one)) for one in (("a", 6), ("large", 8), ("b", 2))]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert order == ["a"]  # b would fit, but is behind large
        inside.set()
        await asyncio.gather(*tasks)
        assert order == ["a", "large", "b"]
        assert room._free == 10

    asyncio.run(share())


class Caller:
    """One request to the app, whose body is not sent before it may be."""

    def __init__(self, app, headers):
        self.asked, self.may, self.answers = asyncio.Event(), asyncio.Event(), []
        scope = {"type": "http", "method": "POST", "path": "/predict", "query_string": b""}
        scope |= {"headers": HEADERS + headers, "app": app}
        self.task = asyncio.ensure_future(app(scope, self.receive, self.send))

    async def receive(self):
        self.asked.set()
        await self.may.wait()
        return {"type": "http.request", "body": b"[]", "more_body": False}

    async def send(self, message):
        self.answers.append(message)

    @property
    def status(self):
        return self.answers[0]["status"]


def test_bodies_are_bounded_in_all():
    """Two requests may send 64 MiB each; the body of a third is not read before one has ended."""
    assert ALL_BODIES == 2 * MAX_BODY
    lengths = [(b"content-length", str(MAX_BODY).encode())]

    async def flood():
        app = make_app(SimpleNamespace(served=None), TOKEN)
        first, second, third = (Caller(app, headers) for headers in (lengths, [], lengths))
        await first.asked.wait()
        await second.asked.wait()
        assert not third.asked.is_set()
        first.may.set()
        await first.task
        await third.asked.wait()
        for caller in (second, third):
            caller.may.set()
            await caller.task
        assert {caller.status for caller in (first, second, third)} == {422}

    asyncio.run(flood())


def test_a_body_that_does_not_come(monkeypatch):
    """Its client is told so, and its room is free again."""
    monkeypatch.setattr(champion_app, "BODY_SECONDS", 0.01)

    async def wait():
        caller = Caller(make_app(SimpleNamespace(served=None), TOKEN), [])
        await caller.task
        assert caller.status == 408

    asyncio.run(wait())
