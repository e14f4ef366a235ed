"""What `bags serve` gives a client: seconds for what it has begun, and room for its body."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
from contextlib import asynccontextmanager, suppress
from types import SimpleNamespace

import numpy as np
import psutil
import pyarrow
import pytest
from uvicorn import Config
from uvicorn.server import ServerState

from bagbasis import DoubleBasisRegressor, MomentsEmbedding
from bagbasis.jobs.commands.serving import (
    body_parsing,
    champion_app,
    limits as serving_limits,
)
from bagbasis.jobs.commands.serving.body_parsing import parsed
from bagbasis.jobs.commands.serving.champion_app import MAX_LARGE, make_app
from bagbasis.jobs.commands.serving.large_bodies import Forks, LargeBodies
from bagbasis.jobs.commands.serving.limits import MemoryLimit, PromptProtocol, Turns
from tests.execution.gated import until
from tests.jobs.serving import Served, answer_request

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


async def test_answers_are_not_held_back():
    """Head and body of an answer are two packets: the second does not wait for an ACK."""
    async with listening() as (state, connect):
        reader, _ = await connect(REQUEST + b"body")
        await reader.readuntil(b"hello")
        (connection,) = state.connections
        accepted = connection.transport.get_extra_info("socket")
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1


@pytest.mark.parametrize("sent", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: x\r\n", REQUEST])
async def test_unfinished_requests_are_closed(sent, monkeypatch):
    """Silence, half a head, a body that was not waited for: the connection ends by itself."""
    monkeypatch.setattr(serving_limits, "HEAD_SECONDS", 0.01)
    async with listening() as (state, connect):
        reader, _ = await connect(sent)
        with suppress(ConnectionResetError):
            await reader.read()
        assert not state.connections


async def test_bytes_that_drip_in_buy_no_time(monkeypatch):
    """The seconds count from the first wait on, not from the last byte."""
    monkeypatch.setattr(serving_limits, "HEAD_SECONDS", 1e6)
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


async def test_the_longest_silence_makes_way(monkeypatch):
    """With too many idle connections the oldest is closed, and the new one answered."""
    monkeypatch.setattr(serving_limits, "MAX_WAITING", 3)
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


async def test_room_is_shared_in_order():
    """What does not fit waits, and what came later waits behind it."""
    room, order = MemoryLimit(10), []
    inside = asyncio.Event()

    async def take(name, size):
        async with room.taking(size):
            order.append(name)
            await inside.wait()

    tasks = [asyncio.ensure_future(take(*item)) for item in (("a", 6), ("large", 8), ("b", 2))]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert order == ["a"]  # b would fit, but is behind large
    inside.set()
    await asyncio.gather(*tasks)
    assert order == ["a", "large", "b"]
    assert room.free == 10


class Caller:
    """One request to the app, whose body is not sent before it may be."""

    body, leaves = b"[]", False

    def __init__(self, app, parts=1):
        self.asked, self.may, self.answers, self.parts = asyncio.Event(), asyncio.Event(), [], parts
        self.asked_again, self.may_again = asyncio.Event(), asyncio.Event()
        scope = {"type": "http", "method": "POST", "path": "/predict", "query_string": b""}
        self.is_gone, self.is_dropped = False, asyncio.Event()
        transport = SimpleNamespace(abort=self.is_dropped.set)
        client = SimpleNamespace(is_gone=lambda: self.is_gone, transport=transport)
        scope |= {"headers": HEADERS, "app": app, "state": {"client": client}}
        self.task = asyncio.ensure_future(app(scope, self.receive, self.send))

    async def receive(self):
        is_first = not self.asked.is_set()
        if is_first:
            self.asked.set()
            await self.may.wait()
            return {"type": "http.request", "body": self.body, "more_body": self.parts > 1}
        if self.parts > 1 and not self.asked_again.is_set():
            self.asked_again.set()
            await self.may_again.wait()
            return {"type": "http.request", "body": b" ", "more_body": False}
        if not self.leaves:
            await asyncio.Event().wait()
        return {"type": "http.disconnect"}

    async def send(self, message):
        self.answers.append(message)

    @property
    def status(self):
        return self.answers[0]["status"]

    async def ended(self):
        """The status of the answer, once it is there."""
        await self.task
        return self.status

    def give(self, body=b"[]"):
        self.body = body
        self.may.set()
        return self


def app_of():
    return make_app(SimpleNamespace(served=Served("x", None)), TOKEN)


async def answered(self, name, url, body):
    return 200, b"{}"


@pytest.fixture
def limited(monkeypatch):
    """Make every body a large one, and set other limits and what answers large bodies."""

    def limit(answer=answered, **values):
        monkeypatch.setattr(LargeBodies, "answer", answer)
        for name, value in {"SMALL_BODY": 1, **values}.items():
            monkeypatch.setattr(champion_app, name, value)

    return limit


async def test_large_bodies_are_bounded_in_all(limited):
    """Two large bodies may be there; what is more of a third is not read before one has ended."""
    limited()
    app = app_of()
    callers = [Caller(app, parts=2).give() for _ in range(MAX_LARGE + 1)]
    for caller in callers[:MAX_LARGE]:
        await caller.asked_again.wait()
    for _ in range(20):
        await asyncio.sleep(0)
    assert not callers[-1].asked_again.is_set()
    small = Caller(app).give(b"[")
    assert await small.ended() == 422  # whoever sends little waits for nobody
    callers[0].may_again.set()
    await callers[0].task
    await callers[-1].asked_again.wait()
    for caller in callers[1:]:
        caller.may_again.set()
        await caller.task
    assert {caller.status for caller in callers} == {200}


async def test_too_many_large_bodies(limited):
    """Beyond those that may wait a client is told to come again, unless one of them has gone."""
    limited(MAX_WAITING_LARGE=2, BODY_SECONDS=0.05)  # waiting takes none of it
    app = app_of()
    held = [Caller(app, parts=2) for _ in range(MAX_LARGE)]
    for caller in held:
        caller.give()
        await caller.asked_again.wait()
    waiting = [Caller(app) for _ in range(2)]
    for caller in waiting:
        caller.give()
        await asyncio.sleep(0)
    refused = Caller(app).give()
    assert await refused.ended() == 503
    assert b"2 other large bodies wait" in refused.answers[1]["body"]
    assert (b"retry-after", b"10") in refused.answers[0]["headers"]
    waiting[0].is_gone = True
    last = Caller(app).give()
    await waiting[0].task
    assert waiting[0].status == 400
    for caller in held:
        assert await caller.ended() == 408
    for caller in (waiting[1], last):
        assert await caller.ended() == 200


def turn_of(turns, order, name, is_gone=bool):
    """A task that notes its name in its turn, and ends once the event that it returns is set."""
    may_end = asyncio.Event()

    async def take():
        async with turns.taking(is_gone):
            order.append(name)
            await may_end.wait()

    return asyncio.ensure_future(take()), may_end


async def settled():
    for _ in range(5):
        await asyncio.sleep(0)


async def test_turns_are_taken_in_order_by_those_who_stay():
    """Those who have gone, or are cancelled, while they wait take no turn, and hold up nobody."""
    turns, order, gone = Turns(1, 10), [], set()
    tasks = {}
    for name in "abcdef":
        tasks[name] = turn_of(turns, order, name, lambda name=name: name in gone)
        await asyncio.sleep(0)
    gone |= {"b", "c"}
    tasks["d"][0].cancel()
    await settled()
    assert order == ["a"]
    tasks["a"][1].set()
    await settled()
    assert order == ["a", "e"]
    tasks["e"][1].set()
    tasks["e"][0].cancel()  # in its turn
    await settled()
    assert order == ["a", "e", "f"]
    for name in "bc":
        with pytest.raises(ConnectionError, match="went away"):
            await tasks[name][0]
    tasks["f"][1].set()
    await tasks["f"][0]
    assert turns.free == 1
    assert not turns.waiting


async def test_a_turn_that_is_handed_to_a_cancelled_client_goes_on():
    turns, order = Turns(1, 10), []
    async with turns.taking(bool):
        first, _ = turn_of(turns, order, "first")
        second, may_end = turn_of(turns, order, "second")
        await settled()
    first.cancel()  # it has not run since the turn is its own
    await settled()
    assert order == ["second"]
    may_end.set()
    await second
    assert turns.free == 1


async def test_clients_that_vanish_keep_nobody_waiting(limited):
    """Twenty that vanish while their body is answered or before: who stays among them is answered
    in its turn, and no work of a client that had gone begins."""
    worked, gate = [], asyncio.Event()

    async def noted(self, name, url, body):
        worked.append(bytes(body))
        await gate.wait()
        return 200, b"{}"

    limited(noted)
    app = app_of()
    callers = [Caller(app) for _ in range(21)]
    for k, caller in enumerate(callers):
        caller.give(f"[{k}]".encode())
        await asyncio.sleep(0)
    while len(worked) < MAX_LARGE:
        await asyncio.sleep(0)
    staying = callers.pop(10)
    for caller in callers[MAX_LARGE:]:
        caller.is_gone = True
    gate.set()
    assert await staying.ended() == 200
    for caller in callers:
        await caller.task
    assert worked == [b"[0]", b"[1]", b"[10]"]


async def test_answers_that_nobody_reads(limited):
    """A client that reads a large answer too slowly loses its connection, and its turn."""

    async def large(self, name, url, body):
        return 200, b" " * 3 * champion_app.ANSWER_BYTES

    limited(large, SLOW_SECONDS=0.05, MIN_RATE=2**40)

    class Unread(Caller):
        async def send(self, message):
            self.answers.append(message)
            if len(self.answers) == 3:
                await asyncio.Event().wait()

        async def receive(self):
            if self.asked.is_set():
                await self.is_dropped.wait()
                return {"type": "http.disconnect"}
            return await super().receive()

    app = app_of()
    unread = [Unread(app).give() for _ in range(MAX_LARGE)]
    reading = Caller(app).give()
    assert await reading.ended() == 200
    assert (
        len(b"".join(part["body"] for part in reading.answers[1:])) == 3 * champion_app.ANSWER_BYTES
    )
    for caller in unread:
        await caller.task
        assert caller.is_dropped.is_set()


async def test_large_answers_to_small_bodies(monkeypatch):
    """They are made by the process for large bodies, in a turn of those."""
    asked = []

    async def large(self, name, url, body):
        asked.append(bytes(body))
        return 200, b"{}"

    monkeypatch.setattr(LargeBodies, "answer", large)
    body = b'{"bags": [[[1]], [[2]], [[3]]]}'
    app = make_app(SimpleNamespace(served=Served("x", None, n_values=30_000)), TOKEN)
    caller = Caller(app).give(body)
    assert await caller.ended() == 200
    assert asked == [body]


@pytest.mark.parametrize(("n_bags", "is_large"), [(1000, False), (50_000, True)])
def test_small_bodies_of_many_bags(n_bags, is_large, monkeypatch):
    """Lists take many times their bytes: a body of many waits for a turn of large ones."""
    monkeypatch.setattr(LargeBodies, "answer", lambda *_: asyncio.sleep(0, (200, b'"large"')))
    monkeypatch.setattr(champion_app, "answer_request", lambda *_: "small")
    body = b'{"bags": [' + b"[1]," * (n_bags - 1) + b"[1]]}"
    assert len(body) < champion_app.SMALL_BODY

    async def ask():
        caller = Caller(app_of()).give(body)
        assert await caller.ended() == 200
        return b"".join(message.get("body", b"") for message in caller.answers)

    assert json.loads(asyncio.run(ask())) == ("large" if is_large else "small")


async def test_work_ends_with_its_client(limited):
    """A client that goes away while its body is answered: the work is cancelled."""
    ended = []

    async def never(self, name, url, body):
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(name)

    limited(never)
    caller = Caller(app_of()).give()
    caller.leaves = True
    await caller.task
    assert ended == ["x"]


@pytest.mark.parametrize("is_begun", [False, True])
async def test_a_server_that_ends(is_begun, limited):
    """What is cancelled at the end gets an answer, and no traceback."""
    begun = asyncio.Event()

    async def never(self, name, url, body):
        begun.set()
        await asyncio.Event().wait()

    limited(never)
    caller = Caller(app_of())
    if is_begun:
        caller.give()
        await begun.wait()
    else:
        await caller.asked.wait()
    caller.task.cancel()
    assert await caller.ended() == 503
    assert b"the server ends" in caller.answers[1]["body"]


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A model and its URL."""
    bags = [np.random.default_rng(i).random((4, 2)) for i in range(20)]
    model = DoubleBasisRegressor(MomentsEmbedding(), alpha=1.0)
    model.fit(bags, [bag.mean() for bag in bags])
    url = str(tmp_path_factory.mktemp("model") / "m.zarr")
    model.save(url)
    return model, url


@pytest.fixture(scope="module")
def large():
    """A process for large bodies. Its start takes seconds, so that tests share it."""
    bodies = LargeBodies()
    yield bodies
    bodies.end()


async def ended(processes):
    """Wait until none of these is alive."""
    while any(
        processe.is_running() and processe.status() != psutil.STATUS_ZOMBIE
        for processe in processes
    ):
        await asyncio.sleep(0.01)


ONE = json.dumps({"bag": [[0.1, 0.2], [0.3, 0.4]]}).encode()


@pytest.mark.long
@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b'{"bag": [[0.5, 0.5, 0.5]]}', "fitted on bags of dimension 2"),
        (b'{"bag": [[1e999, 1]]}', "too big"),
        (b'{"bags": [' + b"[]," * 10**5 + b"[]]}", "100,001 bags"),
        (b'{"bag": ' + b"[" * 10**5, "changed from number to array"),
        (b'{"bag": ' + b"[" * 10**6, "more than 100,000 lists of lists"),
        (b'{"bags": [' + b"[[1]]," * 10**6 + b"[[1]]]}", "send at most 100,000 bags"),
        (b'{"bag": [[1, 2]], "columns": ["\xff", "y"]}', "utf-8"),
        (b"{" + b",".join(b'"%d":1' % i for i in range(10**5)) + b"}", "unexpected field"),
    ],
)
def test_large_bodies_are_refused_as_small_ones(body, reason, saved, large):
    """With a reason: neither the child nor its process dies of what a body holds."""
    status, message = asyncio.run(large.answer("m", saved[1], bytearray(body)))
    assert status == 422
    assert reason in json.loads(message)["detail"]


@pytest.mark.long
def test_the_process_answers_as_the_server_does(saved, large):
    model, url = saved
    status, message = asyncio.run(large.answer("m", url, bytearray(ONE)))
    assert status == 200
    assert json.loads(message) == answer_request(Served("m", model), ONE)
    status, message = asyncio.run(large.answer("none", f"{url}-none", bytearray(ONE)))
    assert status == 422
    assert "m.zarr-none" in json.loads(message)["detail"]


async def test_clients_that_go_end_their_own_work(saved, large):
    """Each kills its child alone: the process stays, and those who stay are answered in turn."""
    _, url = saved
    body = b'{"bag": [' + b"[1.5,2.5]," * 10**4 + b"[1,2]]}"
    process = psutil.Process(large.start().pid)
    stuck = asyncio.ensure_future(large.answer("m", url, bytearray(2**22)))
    staying = [asyncio.ensure_future(large.answer("m", url, bytearray(body))) for _ in "ab"]
    going = [asyncio.ensure_future(large.answer("m", url, bytearray(body))) for _ in range(8)]
    staying.append(asyncio.ensure_future(large.answer("m", url, bytearray(body))))
    while not (children := process.children()):
        await asyncio.sleep(0.01)
    # those who wait, and the one whose child works; on a busy machine some are answered by now
    cancelled = [task for task in (*going, stuck) if task.cancel()]
    assert cancelled
    for task in cancelled:
        with pytest.raises(asyncio.CancelledError):
            await task
    await ended(children)
    assert {status for status, _ in await asyncio.gather(*staying)} == {200}
    assert large.start().pid == process.pid


@pytest.mark.long
def test_children_end_with_the_server():
    """The server dies: its end of the socket is closed then, and no child goes on."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    client, of_child = socket.socketpair()
    pid = os.fork()  # no start of Python, which takes seconds
    if pid == 0:
        try:
            ours.close()
            client.close()
            forks = Forks(theirs)
            forks.served = Served("m", None)
            forks.serve()
        finally:
            os._exit(0)
    theirs.close()
    process = psutil.Process(pid)
    task = json.dumps({"name": "m", "url": "", "size": 9}).encode()  # a body that does not come
    socket.send_fds(ours, [task], [of_child.fileno()])
    until(process.children)
    children = process.children()
    ours.close()
    asyncio.run(ended([process, *children]))
    os.waitpid(pid, 0)
    for end in (client, of_child):
        end.close()


@pytest.mark.long
async def test_the_process_dies(saved, large):
    """It is started again; and it ends, with its children, when the server ends."""
    _, url = saved
    process = large.start()
    os.killpg(process.pid, signal.SIGSTOP)
    work = asyncio.ensure_future(large.answer("m", url, bytearray(ONE)))
    await settled()
    os.killpg(process.pid, signal.SIGKILL)
    with pytest.raises(ConnectionError, match="died"):
        await work
    process.wait()
    assert (await large.answer("m", url, bytearray(ONE)))[0] == 200
    process = psutil.Process(large.start().pid)
    client = large.fork_child(json.dumps({"name": "m", "url": url, "size": 9}).encode())
    while not process.children():
        await asyncio.sleep(0.01)
    processes = [process, *process.children()]
    large.end()
    await ended(processes)
    client.close()


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ('{"bag": [[1, 2], [3]]}', "1 to 2 coordinates"),
        ('{"bag": [[1, null]]}', "null"),
        ('{"bag": [null]}', "null"),
        ('{"bag": [[1, "2"]]}', "changed from number to string"),
        ('{"bag": [[1, true]]}', "changed from number to boolean"),
        ('{"bag": [[1, 2]], "bag": [[1, 2]]}', "specified twice"),
        ('{"bag": [[1, 2]], "bags": []}', "expected"),
        ('{"bag": [[1, 2]]} {"bag": [[1, 2]]}', "not one object"),
        ('{"bag": [[1, 2]], "x": 1}', "unexpected field"),
        ('{"bags": [[[1, 2]], null]}', "bag 1 holds null"),
        ('{"bags": []}', "no bags"),
        ('{"bag": []}', "bag 0 is empty"),
        ('{"bag": [[NaN, 1]]}', "row 0"),
        ("{}", "expected"),
        ("[1]", "expected"),
        ("", "expected"),
        ('{"bag": ' + "[" * 10**5, "expected"),
        ("{" + '"bags": [' + "[[1]]," * 10**5 + "[[1]]]}", "100,001 bags"),
    ],
)
@pytest.mark.parametrize("piece", [1, body_parsing.PARSED_BYTES])
def test_large_bodies_that_are_not_bags(body, reason, piece, monkeypatch):
    """The reader of large bodies refuses them with a reason, wherever they are cut into pieces."""
    monkeypatch.setattr(body_parsing, "PARSED_BYTES", max(piece, len(body) // 10))
    with pytest.raises(ValueError, match=re.escape(reason)):
        parsed(body.encode())


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
@pytest.mark.parametrize(
    "body",
    [
        '{"bag": [[1, 2.5], [18446744073709551617, -1e-3]]}',
        '{"columns": ["a", "true"],\n "bags": [[[1, 2]], [[3, 4], [5, 6]]]}',
        '{"bags": [[[1, 2] , [3, 4]],\n[ [5,6] ,[7, 8.5e-3] ] ], "columns": ["],[", "[["]}',
        '{"bag": [[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]]}',
        '{"bags": [[[1], [2]], [[3]], [[4], [5]]]}',
        '{"bag": [1, 2.5, -3, 4]}',
        '{"bags": [[1, 2], [3], [4, 5]]}',
    ],
)
@pytest.mark.parametrize("piece", [1, 9, body_parsing.PARSED_BYTES])
def test_both_readers_agree(body, encoding, piece, monkeypatch):
    """Numbers of any size, also where points stand otherwise, and any encoding of JSON."""
    monkeypatch.setattr(body_parsing, "PARSED_BYTES", piece)
    bags, is_single, names = parsed(body.encode(encoding))
    values = json.loads(body)
    expected = [values["bag"]] if is_single else values["bags"]
    assert names == values.get("columns")
    for bag, points in zip(bags, expected, strict=True):
        np.testing.assert_array_equal(bag, np.array(points, dtype=float).reshape(len(points), -1))


async def test_large_bodies_that_drip_lose_their_slot(limited):
    """Each for a bounded time: a body behind them is answered."""
    limited(SLOW_SECONDS=0.05)
    app = app_of()
    slow = [Caller(app, parts=2).give() for _ in range(3 * MAX_LARGE)]
    quick = Caller(app).give()
    assert await quick.ended() == 200
    for caller in slow:
        assert await caller.ended() == 408
        assert b"too slowly" in caller.answers[1]["body"]


async def test_large_bodies_that_come_at_the_least_rate(limited):
    """What has arrived gives more time: the rest of a body may come later than a drip's."""
    limited(SLOW_SECONDS=0.0, MIN_RATE=0.1)
    caller = Caller(app_of(), parts=2).give(b"[1,2]")
    await caller.asked_again.wait()
    caller.may_again.set()
    assert await caller.ended() == 200


async def test_a_body_that_does_not_come(monkeypatch):
    """Its client is told so, and its room is free again."""
    monkeypatch.setattr(champion_app, "BODY_SECONDS", 0.01)
    caller = Caller(app_of())
    assert await caller.ended() == 408


@pytest.mark.parametrize("item", [b"[1]", b"[1,2]", b"[[1]]", b"[]", b"1", b"{}", b"[[1,1],[2,2]]"])
@pytest.mark.parametrize("name", [b"bag", b"bags"])
def test_memory_of_a_large_body(item, name, monkeypatch):
    """The parser takes some times a piece, however long the body is; numbers take eight bytes."""
    monkeypatch.setattr(body_parsing, "PARSED_BYTES", 2**14)
    monkeypatch.setattr(body_parsing, "MAX_REQUEST_BAGS", 2**21)
    size = 2**20
    body = b'{"%s": [' % name + b",".join([item] * (size // (len(item) + 1))) + b"]}"
    before = pyarrow.default_memory_pool()
    pool = pyarrow.proxy_memory_pool(pyarrow.system_memory_pool())
    pyarrow.set_memory_pool(pool)
    try:
        with suppress(ValueError):
            parsed(body)
    finally:
        pyarrow.set_memory_pool(before)
    assert 0 < pool.max_memory() < size / 2


@pytest.mark.parametrize(
    "body",
    [b'{"bag": [[%s]]}' % (b"1" * 300), b'{"bag": [[1,%s2]]}' % (b" " * 300),
     b'{"bag": [[1]], "columns": ["%s"]}' % (b"a" * 300)],
)  # fmt: skip
def test_a_value_of_a_large_body_is_bounded(body, monkeypatch):
    """What has no comma cannot be cut, and would be parsed at once: many times its bytes."""
    monkeypatch.setattr(body_parsing, "PARSED_BYTES", 50)
    monkeypatch.setattr(body_parsing, "MAX_VALUE_BYTES", 300)
    parsed(body.replace(b"1" * 300, b"1" * 30))
    monkeypatch.setattr(body_parsing, "MAX_VALUE_BYTES", 200)
    with pytest.raises(ValueError, match="a value of more than 200 bytes; expected numbers"):
        parsed(body)


def test_numbers_of_a_large_body_are_bounded(monkeypatch):
    """Sixteen millions of one digit would be a quarter of the bytes that they take as numbers."""
    monkeypatch.setattr(body_parsing, "MAX_NUMBERS", 5)
    assert len(parsed(b'{"bag": [[1, 2], [3, 4]]}')[0][0]) == 2
    with pytest.raises(ValueError, match="more than 5 numbers; send fewer bags or points"):
        parsed(b'{"bag": [[1, 2], [3, 4], [5, 6]]}')
