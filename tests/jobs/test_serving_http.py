"""`bags serve` and clients that break HTTP, or send what is not a bag: an answer, or one clear 4xx.

The server runs in a thread of this process; large bodies are answered there too.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
import random
import socket
import threading
from contextlib import closing, suppress
from types import SimpleNamespace

import numpy as np
import pytest
import uvicorn

from bagbasis import BagbasisError, DoubleBasisRegressor, MomentsEmbedding
from bagbasis.core.compiling import EarlyKernel
from bagbasis.jobs.commands.serving import body_parsing, champion_app, limits as serving_limits
from bagbasis.jobs.commands.serving.body_parsing import parsed
from bagbasis.jobs.commands.serving.champion_app import make_app
from bagbasis.jobs.commands.serving.large_bodies import LargeBodies
from bagbasis.jobs.commands.serving.requests import response, warm
from bagbasis.jobs.commands.serving.serve import server_config
from tests.jobs.serving import Served, answer_request

TOKEN = "0123456789abcdef"
HEAD = f"POST /predict HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n".encode()
RNG = np.random.default_rng(0)
BAGS = [RNG.random((9, 2)).round(3) for _ in range(12)]
ONE = json.dumps({"bag": BAGS[0].tolist()}).encode()
TWO = json.dumps({"bag": BAGS[1].tolist()}).encode()
LARGE = json.dumps({"bag": [[0.5, 0.25]] * 30_000}).encode()


@pytest.fixture(scope="module")
def model():
    return DoubleBasisRegressor(MomentsEmbedding(), alpha=1.0).fit(BAGS, np.arange(12.0))


class Here(uvicorn.Server):
    """A server in a thread of this process."""

    def __init__(self, app):
        super().__init__(server_config(app, (None, None)))
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.thread = threading.Thread(target=self.run, args=([self.listener],))
        self.thread.start()

    def connect(self):
        client = socket.create_connection(self.listener.getsockname(), timeout=30)
        return closing(client)

    def ask(self, sent):
        """Everything that the server answers to these bytes, until it closes."""
        with self.connect() as client:
            with suppress(ConnectionError):
                client.sendall(sent)
            return read(client)

    def end(self):
        self.should_exit = True
        self.thread.join()


def read(client):
    parts = []
    with suppress(ConnectionResetError):
        while part := client.recv(2**16):
            parts.append(part)
    return b"".join(parts)


def answers(message):
    """Status and JSON of each answer in what a server has sent."""
    values = []
    while message:
        head, _, rest = message.partition(b"\r\n\r\n")
        status = int(head.split()[1])
        if status == 100:
            values.append((100, None))
            message = rest
            continue
        (size,) = (int(line[16:]) for line in head.lower().split(b"\r\n") if b"length:" in line)
        values.append((status, json.loads(rest[:size])))
        message = rest[size:]
    return values


@pytest.fixture(scope="module")
def server(model):
    served = Served("m", model, n_values=warm(model))

    async def in_thread(self, name, url, body):
        def work():
            try:
                return 200, json.dumps(response(served, *parsed(bytes(body)))).encode()
            except ValueError as error:
                return 422, json.dumps({"detail": str(error)}).encode()

        return await asyncio.to_thread(work)

    patch = pytest.MonkeyPatch()
    patch.setattr(LargeBodies, "start", lambda self: None)
    patch.setattr(LargeBodies, "answer", in_thread)
    champion = SimpleNamespace(served=served, trouble=None, follow=lambda stop: None)
    here = Here(make_app(champion, TOKEN))
    yield here
    here.end()
    patch.undo()


@pytest.fixture(autouse=True)
def silence(caplog):
    """No traceback comes of any request."""
    yield
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


def post(body, *lines, close=True):
    lines = [f"Content-Length: {len(body)}", *lines, *["Connection: close"] * close]
    return HEAD + "\r\n".join([*lines, "", ""]).encode("latin-1") + body


def chunked(body, size=7, extension=b";a=b"):
    parts = (body[start : start + size] for start in range(0, len(body), size))
    chunks = b"".join(b"%x%s\r\n%s\r\n" % (len(part), extension, part) for part in parts)
    head = HEAD + b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    return head + chunks + b"0\r\nX-Trailer: y\r\n\r\n"


def of(model, bag):
    return pytest.approx(float(model.predict([bag])[0]), rel=1e-6)


def test_requests_one_behind_the_other(server, model):
    """A large one among them: the answers come in order."""
    sent = post(ONE, close=False) + post(LARGE, close=False) + post(b"{", close=False) + post(TWO)
    message = answers(server.ask(sent))
    assert [status for status, _ in message] == [200, 200, 422, 200]
    assert message[0][1]["prediction"] == of(model, BAGS[0])
    assert message[1][1]["prediction"] == of(model, np.array([[0.5, 0.25]]))
    assert message[3][1]["prediction"] == of(model, BAGS[1])


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_chunks_with_extensions_and_trailers(size, server, model):
    ((status, message),) = answers(server.ask(chunked(ONE, size)))
    assert (status, message["prediction"]) == (200, of(model, BAGS[0]))


def test_expect_continue(server, model):
    """It comes before the body, and not before a refusal by the head alone."""
    head = post(ONE, "Expect: 100-continue")[: -len(ONE)]
    with server.connect() as client:
        client.sendall(head)
        assert client.recv(2**10).startswith(b"HTTP/1.1 100")
        client.sendall(ONE)
        ((status, message),) = answers(read(client))
    assert (status, message["prediction"]) == (200, of(model, BAGS[0]))
    for sent, refusal in (
        (post(b"", "Expect: 100-continue").replace(b"th: 0", b"th: 9999999999"), 413),
        (post(b"", "Expect: 100-continue", "Content-Encoding: gzip"), 415),
        (head.replace(TOKEN.encode(), b"another token"), 401),
    ):
        assert [status for status, _ in answers(server.ask(sent))] == [refusal]


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ("Content-Length: -5", "bad Content-Length"),
        ("Content-Length: 1e3", "bad Content-Length"),
        ("Content-Length: 0x10", "bad Content-Length"),
        ("Content-Length: 5\r\nContent-Length: 6", "conflicting Content-Length"),
        ("Content-Length: 5, 6", "conflicting Content-Length"),
        ("Transfer-Encoding: gzip, chunked", "Transfer-Encoding"),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", "Transfer-Encoding"),
        ("Host : x", "illegal"),
        ("X: \x00", "illegal"),
    ],
)
def test_heads_that_lie(lines, reason, server):
    """They are refused with the reason, and what follows is not taken for another request."""
    sent = HEAD + lines.encode() + b"\r\n\r\n" + b"5\r\n" + ONE + post(ONE)
    ((status, message),) = answers(server.ask(sent))
    assert status == 400
    assert reason in message["detail"]


@pytest.mark.parametrize("length", [0, 5, 10**4])
def test_a_length_beside_chunks(length, server):
    """One of both lies: the connection ends with the refusal."""
    head = HEAD + b"Content-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n" % length
    ((status, message),) = answers(server.ask(head + b"0\r\n\r\n" + post(ONE)))
    assert status == 400
    assert "not both" in message["detail"]


def test_lengths_that_are_wrong(server, model):
    """What follows a body is no request; a body that is short is refused when the client ends."""
    with server.connect() as client:
        client.sendall(post(ONE, close=False) + b"[[1, 2]]}" + b"\r\n\r\n")
        first, second = answers(read(client))
    assert (first[0], first[1]["prediction"]) == (200, of(model, BAGS[0]))
    assert second[0] == 400
    cut = post(ONE)[:-10]
    with server.connect() as client:
        client.sendall(cut)
        client.shutdown(socket.SHUT_WR)
        ((status, message),) = answers(read(client))
    assert (status, message["detail"]) == (400, "the body was cut off; send the request again")
    same = HEAD + b"Content-Length: %d\r\n" % len(ONE) + post(ONE)[len(HEAD) :]
    assert answers(server.ask(same))[0][0] == 200  # twice the same length is one length


@pytest.mark.parametrize(
    "chunk", [b"-1\r\n", b"zz\r\n", b"5\r\n123456", b"ffffffffffffffffffffff\r\n"]
)
def test_chunks_that_are_none(chunk, server):
    sent = HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunk + b"\r\n" * 2
    ((status, message),) = answers(server.ask(sent))
    assert status == 400
    assert "not valid HTTP" in message["detail"]


def test_sides_that_are_closed(server, model):
    """A client may send no more once its requests are whole; a large one has to stay."""
    sent = post(ONE, close=False) + post(TWO, close=False)
    for tail, statuses in ((b"", []), (b"POST /pre", [400]), (post(ONE)[:-3], [400])):
        with server.connect() as client:
            client.sendall(sent + tail)
            client.shutdown(socket.SHUT_WR)
            message = answers(read(client))
        assert [status for status, _ in message] == [200, 200, *statuses]
        assert message[1][1]["prediction"] == of(model, BAGS[1])
    with server.connect() as client:
        client.sendall(post(LARGE))
        client.shutdown(socket.SHUT_WR)
        ((status, message),) = answers(read(client))
    assert status == 400
    assert "keep it open" in message["detail"]


def test_requests_cut_anywhere(server, model):
    """Each gets 400, or the connection ends; and the next client is answered."""
    whole = post(ONE)
    cuts = sorted({*range(1, len(whole), 13), len(HEAD), len(whole) - len(ONE)})
    for cut in cuts:
        with server.connect() as client:
            client.sendall(whole[:cut])
            client.shutdown(socket.SHUT_WR)
            assert [status for status, _ in answers(read(client))] == [400]
        with server.connect() as client:
            client.sendall(whole[:cut])
    ((status, message),) = answers(server.ask(whole))
    assert (status, message["prediction"]) == (200, of(model, BAGS[0]))


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (["Content-Encoding: gzip"], "uncompressed"),
        (["Content-Encoding: br"], "uncompressed"),
        (["Content-Encoding: identity, gzip"], "uncompressed"),
        (["Content-Type: multipart/form-data; boundary=x"], "the JSON itself"),
        (["Content-Type: application/json; charset=latin-1"], "UTF-8"),
    ],
)
def test_bodies_in_other_forms(lines, reason, server):
    """Compressed ones are never unpacked."""
    bomb = gzip.compress(b" " * 10**6)
    ((status, message),) = answers(server.ask(post(bomb, *lines)))
    assert status == 415
    assert reason in message["detail"]


@pytest.mark.parametrize(
    "line",
    [
        "Content-Type: application/json; charset=UTF-8",
        "Content-Type: application/x-www-form-urlencoded",
        "Content-Type: text/csv",
        'Content-Type: application/json;charset="utf-16"; a=b',
        "Content-Encoding: identity",
        "Content-Type:",
    ],
)
def test_json_is_read_whatever_it_is_called(line, server, model):
    ((status, message),) = answers(server.ask(post(ONE, line)))
    assert (status, message["prediction"]) == (200, of(model, BAGS[0]))


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b'{"columns": ["\\ud800"], "bag": [[1, 2]]}', "expected a list of 2 texts"),
        (b'{"\\ud800": [[1, 2]]}', "expected"),
        (b'{"bag": "\\udfff"}', "bag 0"),
        (b'{"bag": [[1, Infinity]]}', "row 0: coordinate 1 is inf"),
        (b'{"bag": [[1, 1e999]]}', "coordinate 1 is inf"),
        (b'{"bag": [[1, {}]]}', "bag 0"),
        (b'{"bag": {"a": [1, 2]}}', "bag 0"),
        (b'{"bags": {"a": [[1, 2]]}}', "expected a list"),
        (b'{"bag": [[1, [2]]]}', "bag 0"),
        (b'{"bag": null}', "bag 0"),
        (b"null", "expected"),
        (b'"bag"', "expected"),
        (b"{" + b",".join(b'"%x":1' % k for k in range(20_000)) + b"}", "expected"),
        (b'{"bag":' * 30_000, "recursion"),
        (b"\xff\xfe{", "truncated"),
        pytest.param(gzip.compress(ONE), "utf-8", id="gzip"),  # its bytes have the time
    ],
)
def test_bodies_that_are_no_bags(body, reason, server):
    ((status, message),) = answers(server.ask(post(body)))
    assert status == 422, message
    assert reason in message["detail"]


@pytest.mark.parametrize("key", ["predictions", "probabilities"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_predictions_that_are_not_finite(key, value):
    """They would be null in JSON."""
    arrays = {"predictions": np.array([1.0, 2.0, 3.0]), key: np.array([1.0, value, 3.0])}
    predicted = SimpleNamespace(predicted=lambda bags: SimpleNamespace(arrays=lambda: arrays))
    served = Served("m", SimpleNamespace(model_=predicted))
    with pytest.raises(ValueError, match="bag 1: its prediction is not finite"):
        answer_request(served, b'{"bags": [[[1]], [[2]], [[3]]]}')


def test_answers_too_large_to_send(model):
    many = Served("m", model, n_values=10**6)
    with pytest.raises(ValueError, match="send at most 2 bags at a time"):
        answer_request(many, json.dumps({"bags": [bag.tolist() for bag in BAGS[:3]]}).encode())


def test_an_answer_that_is_not_read(server, monkeypatch):
    """The connection is dropped, whatever is written to it still."""
    monkeypatch.setattr(serving_limits, "UNREAD_SECONDS", 0.05)
    made = threading.Event()

    async def much(self, name, url, body):
        made.set()
        return 200, b" " * (16 * 2**20)

    monkeypatch.setattr(LargeBodies, "answer", much)
    with server.connect() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2**12)
        client.sendall(post(LARGE))
        made.wait()
        while server.server_state.tasks:
            threading.Event().wait(0.01)
        while server.server_state.connections:
            threading.Event().wait(0.01)


def test_the_end_of_a_server_beside_all_these(model, monkeypatch):
    """It ends in time; requests that are open get 503 or nothing."""
    monkeypatch.setattr("bagbasis.jobs.commands.serving.serve.GRACE_SECONDS", 0.2)
    working = threading.Event()

    async def never(self, name, url, body):
        working.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(LargeBodies, "start", lambda self: None)
    monkeypatch.setattr(LargeBodies, "answer", never)
    monkeypatch.setattr(champion_app, "MAX_LARGE", 1)
    champion = SimpleNamespace(served=Served("m", model), trouble=None, follow=lambda stop: None)
    here = Here(make_app(champion, TOKEN))
    with here.connect() as running, here.connect() as waiting, here.connect() as head:
        running.sendall(post(LARGE))
        working.wait()
        waiting.sendall(post(LARGE))
        head.sendall(HEAD)
        with here.connect() as dripping, here.connect() as idle, here.connect() as half:
            dripping.sendall(chunked(ONE)[:-20])
            half.sendall(post(LARGE))
            half.shutdown(socket.SHUT_WR)
            while len(here.server_state.tasks) < 3:
                threading.Event().wait(0.01)
            here.end()
            for client in (running, waiting, dripping):
                assert [status for status, _ in answers(read(client))] == [503]
            assert read(idle) == read(head) == b""


def pieces(rng, depth=0):
    """A text that is JSON, or nearly."""
    kind = rng.random()
    if depth > 4 or kind < 0.35:
        words = ["1", "-2.5", "1e5", "0", "NaN", "null", "true", '"a"', "{}", "[]", "1e400", "-0.0"]
        return rng.choice([*words, "01"])
    if kind < 0.85:
        return "[" + ",".join(pieces(rng, depth + 1) for _ in range(rng.randrange(4))) + "]"
    keys = ["bag", "bags", "columns", "x", "bag"]
    items = (f'"{rng.choice(keys)}":{pieces(rng, depth + 1)}' for _ in range(rng.randrange(3)))
    return "{" + ",".join(items) + "}"


@pytest.mark.long
@pytest.mark.parametrize("piece", [1, 2**20])
def test_both_readers_give_the_same_answer_or_refuse(piece, model, monkeypatch):
    """Random bodies: no error but those that are told, and none is answered by one reader alone."""
    monkeypatch.setattr(body_parsing, "PARSED_BYTES", piece)
    served, rng, n_answered = Served("m", model), random.Random(0), 0

    def small(body):
        return answer_request(served, body)

    def large(body):
        return response(served, *parsed(body))

    for k in range(3000):
        points = (f"[{pieces(rng, 9)},{rng.random()}]" for _ in range(rng.randrange(1, 3)))
        bag = "[" + ",".join(points) + "]"
        text = rng.choice([pieces(rng), f'{{"bag": {bag}}}', f'{{"bags": [{bag}, [[1, 2]]]}}'])
        messages = []
        for reader in (small, large):
            try:
                messages.append(reader(text.encode()))
            except (BagbasisError, ValueError, RecursionError):
                messages.append(None)
        assert messages[0] == messages[1], (k, text)
        n_answered += messages[0] is not None
    assert n_answered > 100


def test_kernels_are_compiled_before_clients_come(model):
    """NumPy stands in for kernels only where nobody waits for the next answer."""
    seconds = []

    class Noting:
        features = model.model_.features

        def predicted(self, bags):
            seconds.append(EarlyKernel.seconds_early)
            return model.model_.predicted(bags)

    assert warm(SimpleNamespace(model_=Noting())) == warm(model)
    assert seconds == [0.0] < [EarlyKernel.seconds_early]
