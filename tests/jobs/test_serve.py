"""bags serve: a real process that answers with the champion, whichever it is by then."""

from __future__ import annotations

import json
import os
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from distributed import Security

from bagbasis import (
    ConfigError,
    DoubleBasisClassifier,
    DoubleBasisRegressor,
    MomentsEmbedding,
    load_model,
)
from bagbasis.jobs.commands.serving.serve import own_token
from bagbasis.operations import Registry
from tests.execution.gated import until
from tests.jobs.running import refused
from tests.jobs.serving import Served, answer_request, serving

CLIENTS, REQUESTS, ROUNDS = 8, 1000, 5
RNG = np.random.default_rng(0)
BAGS = [RNG.random((n, 2)).round(3) for n in range(3, 33)]
LABELS = np.array([bag.mean() for bag in BAGS])
ONE = json.dumps({"bag": BAGS[0].tolist()})


@pytest.fixture(scope="module")
def registry(tmp_path_factory):
    """Two regressors and a classifier; a regressor is the champion."""
    made = Registry(tmp_path_factory.mktemp("served") / "registry")
    for alpha in (0.1, 10.0):
        made.register(DoubleBasisRegressor(MomentsEmbedding(), alpha=alpha).fit(BAGS, LABELS))
    classes = np.where(np.median(LABELS) < LABELS, "much", "little")
    made.register(DoubleBasisClassifier(MomentsEmbedding(), alpha=0.1).fit(BAGS, classes))
    made.promote(made.list()[0].name)
    return made


@pytest.fixture(scope="module")
def arguments(registry, tmp_path_factory):
    """Arguments of servers that share a registry and a token."""
    return registry.url, "--token-file", tmp_path_factory.mktemp("t") / "token"


@pytest.fixture(scope="module")
def server(arguments):
    with serving(*arguments) as made:
        yield made


@pytest.mark.long
def test_no_answer_is_lost_while_champions_change(registry, server):
    """1,000 requests of 8 clients at once, the champion replaced five times meanwhile: each is
    answered, as the model predicts that it names; and who was promoted comes to answer."""
    names = [record.name for record in registry.list()[:2]]
    models = {name: load_model(registry.model_url(name)) for name in names}
    expected = {name: model.predict(BAGS) for name, model in models.items()}

    def ask(indices):
        """Ask about these bags, one after the other, on one connection."""
        connection = server.connection()
        bodies = [json.dumps({"bag": BAGS[i].tolist()}) for i in indices]
        asked = zip(indices, bodies, strict=True)
        return [(i, *server.ask("/predict", body, connection)) for i, body in asked]

    futures = []
    shares = np.array_split(np.arange(REQUESTS // (ROUNDS + 1) + 1) % len(BAGS), CLIENTS)
    with ThreadPoolExecutor(CLIENTS) as clients:
        for k in range(ROUNDS + 1):
            futures += [clients.submit(ask, share) for share in shares]
            if k < ROUNDS:
                registry.promote(names[(k + 1) % 2])
                until(lambda: server.ask("/health")[1]["model"] == registry.current())
    answers = [item for future in futures for item in future.result()]
    assert len(answers) >= REQUESTS
    assert {status for _, status, _ in answers} == {200}
    for i, _, message in answers:
        np.testing.assert_allclose(message["prediction"], expected[message["model"]][i], rtol=1e-6)
    assert {message["model"] for _, _, message in answers} == set(names)
    assert server.ask("/health")[1]["trouble"] is None


@pytest.mark.long
def test_a_second_server_of_the_registry(registry, server, arguments):
    """Both answer, and both follow the champion; when one has ended the other goes on."""
    names = [item.name for item in registry.list() if item.name != registry.current()]
    with serving(*arguments) as second:
        assert second.token == server.token
        for name in names:
            registry.promote(name)
            for item in (server, second):
                until(lambda value=item, name=name: value.ask("/health")[1]["model"] == name)
            assert server.ask("/predict", ONE) == second.ask("/predict", ONE)
    assert server.ask("/predict", ONE)[0] == 200


@pytest.mark.long
def test_batches_and_classes(registry, server):
    """A list of bags has a row per bag; classes come with their probabilities."""
    classifier = registry.list()[2].name
    registry.promote(classifier)
    until(lambda: server.ask("/health")[1]["model"] == classifier)
    model = registry.load_current()
    status, message = server.ask("/predict", json.dumps({"bags": [b.tolist() for b in BAGS]}))
    assert status == 200
    assert message["predictions"] == model.predict(BAGS).tolist()
    np.testing.assert_allclose(message["probabilities"], model.predict_proba(BAGS), rtol=1e-5)
    _, first = server.ask("/predict", ONE)
    assert first["prediction"] == message["predictions"][0]
    assert server.ask("/model")[1]["kind"] == "DoubleBasisClassifier"


@pytest.mark.long
def test_long_bodies_are_not_read(server):
    """Neither one that says how long it is, nor one that does not."""
    assert server.ask("/predict", b"", **{"Content-Length": str(2**40)})[0] == 413
    assert server.ask("/predict", iter([*[b" " * 2**20] * 64, b" "]))[0] == 413
    assert server.ask("/health")[0] == 200


@pytest.mark.long
def test_strangers_keep_nobody_out(server):
    """64 connections without the token, half of them silent and half in the midst of a request."""
    host, _, port = server.place.partition(":")
    strangers = [socket.create_connection((host, int(port))) for _ in range(64)]
    for stranger in strangers[::2]:
        stranger.sendall(b"POST /predict HTTP/1.1\r\nHost: x\r\n")
    assert server.ask("/health")[0] == 200
    assert server.ask("/predict", ONE)[0] == 200
    for stranger in strangers:
        stranger.close()


def test_nobody_without_the_token(server):
    """Not even a path that is not there says so to another account."""
    for path in ("/health", "/model", "/openapi.json", "/nowhere"):
        for token in ("", "Bearer ", f"Bearer {server.token}x", server.token):
            assert server.ask(path, Authorization=token)[0] == 401
    assert server.ask("/nowhere")[0] == 404
    assert "/predict" in server.ask("/openapi.json")[1]["paths"]


@pytest.mark.long
def test_a_registry_that_is_damaged(registry, server):
    """The champion of before goes on answering, and health says why."""
    pointer = f"{registry.url}/champion.json"
    with open(pointer, "rb+") as file:
        content = file.read()
        file.truncate(5)
    until(lambda: server.ask("/health")[1]["status"] == "stale")
    assert "champion.json" in server.ask("/health")[1]["trouble"]
    assert server.ask("/predict", ONE)[0] == 200
    with open(pointer, "wb") as file:
        file.write(content)
    until(lambda: server.ask("/health")[1]["status"] == "ok")


@pytest.mark.long
def test_tls(registry, tmp_path):
    """With a certificate it may listen anywhere; by default the token lies with the account."""
    tls = Security.temporary()
    for name, text in (("c.pem", tls.tls_scheduler_cert), ("k.pem", tls.tls_scheduler_key)):
        (tmp_path / name).write_text(text)
    pem = "--certificate", tmp_path / "c.pem", "--key", tmp_path / "k.pem"
    with serving(registry.url, "--host", "0.0.0.0", *pem) as server:
        assert server.scheme == "https"
        server.certificate = tls.tls_scheduler_cert
        assert server.ask("/health")[1]["status"] == "ok"
    token = Path(os.environ["XDG_STATE_HOME"], "bagbasis", "serve.token")
    assert f"{token.stat().st_mode:o}" == "100600"


def test_what_is_not_served(registry, tmp_path):
    """Beyond loopback without TLS, a token that others can read, no champion: one line each."""
    token = tmp_path / "token"
    args = "serve", registry.url, "--token-file", token
    for more in (["--host", "0.0.0.0"], ["--key", "k.pem"]):
        assert "give --certificate and --key" in refused(2, *args, *more)
    assert "c.pem" in refused(2, *args, "--certificate", "c.pem", "--key", "k.pem")
    assert f"{token.stat().st_mode & 0o777:o}" == "600"
    token.chmod(0o644)
    assert "chmod 600" in refused(2, *args)
    token.chmod(0o600)
    token.write_text("short")
    assert "at least 16 characters" in refused(2, *args)
    assert "delete the file" in refused(2, *args)
    token.unlink()
    assert "no model was promoted" in refused(1, "serve", tmp_path / "none", "--token-file", token)
    assert "65536 cannot be listened at" in refused(1, *args, "--port", 65536)


@pytest.mark.long
def test_a_kill_leaves_no_empty_token(tmp_path, monkeypatch):
    """Killed while it writes its first token, the next start makes one; two starts share one."""
    path = tmp_path / "state" / "token"

    def killed(n_bytes):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("bagbasis.jobs.commands.serving.serve.secrets.token_urlsafe", killed)
        with pytest.raises(KeyboardInterrupt):
            own_token(path)
    token = own_token(path)
    assert len(token) >= 32
    assert own_token(path) == token
    assert [item.name for item in path.parent.iterdir()] == ["token"]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"0123456789abcdef\n0123456789abcdef\n", "one token on one line"),
        (b"0123456789abcdef 0123456789abcdef", "one token on one line"),
        (b"0123456789\x1babcdef", "one token on one line"),
        (b"0123456789abcdef\xff", "not ASCII"),
        ("0123456789abcdefü".encode(), "not ASCII"),
        (b"0" * 5000, "at most 4,096 bytes"),
        (None, "not a regular file"),
    ],
)
def test_token_files(content, reason, tmp_path):
    """What clients cannot send, or what would be waited for, is refused by name."""
    path = tmp_path / "token"
    if content is None:
        os.mkfifo(path, 0o600)
    else:
        path.write_bytes(content)
        path.chmod(0o600)
    with pytest.raises(ConfigError, match=reason) as caught:
        own_token(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ('{"bag": [[1, 2]], "bag": [[3, 4]]}', "'bag' comes twice"),
        (
            '{"columns": ["a", "b"], "bag": [[1, 2]], "columns": ["c", "d"]}',
            "'columns' comes twice",
        ),
        ('{"bags": [' + "[[1]]," * 10**5 + "[[1]]]}", "100,001 bags"),
    ],
)
def test_bodies_that_are_not_clear(body, reason):
    with pytest.raises(ValueError, match=reason):
        answer_request(Served("m", None), body.encode())


@pytest.mark.long
def test_text_that_is_not_utf_8():
    """A lone surrogate, as a shell makes of such bytes, is one line."""
    assert "not UTF-8" in refused(2, "fit", "--set", "data_url=a\udcff.zarr")
    assert "not UTF-8" in refused(2, "fit", "--set", "\ud800=3")
    for args in (["info"], ["verify"], ["models", "list"], ["runs", "--root"], ["attach"], ["x"]):
        assert "byte 3 is not UTF-8" in refused(2, *args, "a\u00fc\udcff.zarr")
