"""Secrets: random ones in every place of a URL, searched for in all that is written or printed."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import traceback
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pytest
from pydantic import BaseModel

from bagbasis import BagbasisError, BagStore, ConfigError, StoreError, load_model
from bagbasis.core.config_errors import refuse_credentials
from bagbasis.core.credentials import has_credentials, without_credentials
from bagbasis.core.errors import one_line, shown
from bagbasis.data.storage.urls import normalize_url
from bagbasis.execution.clusters.profiles import load_profile
from bagbasis.jobs.commands.serving.large_bodies import LargeBodies
from bagbasis.jobs.other_commands import COMMANDS
from bagbasis.jobs.runs import submit
from tests.data.storage.secret_urls import OPTIONS, PLACES, Case, cases, leaks
from tests.jobs.running import JOBS, bags, import_job, settings

N_URLS, N_PER_JOB = 40 * len(PLACES), 3 * len(PLACES)
HARMLESS = [
    "s3://bucket/a:b@c/d.zarr",
    "s3://bucket/table/key=5/part.parquet",
    "s3://arn:aws:s3:us-west-2:123456789012:accesspoint/ap/a@b.parquet",
    "s3://bucket/a.zarr?versionId=3HL4kqtJlcpXroDTDmJ+rmSpXd3dIbrHY",
    "abfs://container@account.example.org/a",
    "github://owner:repository@main/a.csv",
    "git://folder:repository@main/a.csv",
    "ssh://me@host:22/a",
    "https://example.org/npm/vega@5/a.csv",
    "https://example.org:8080/a%40b.csv",
    "https://host:8080/a?design=2&sort_key=points",
    "https://host/a?page_token=5&nextPageToken=6",
    "https://host/a?mail=me@example.org",
    "http://127.0.0.1:8000/predict",
    "tcp://127.0.0.1:8786",
    "zip://a/b.csv::s3://bucket/a.zip",
    "simplecache::https://example.org/a.csv",
    "memory://bags",
]


def outputs(case: Case, call) -> str:
    """Everything that an error of a call says of itself, with its traceback."""
    with pytest.raises(BagbasisError) as caught:
        call()
    error = caught.value
    assert "credentials" in str(error), case
    return f"{error}\n{error!r}\n{error.__cause__!r}"


# how a URL gets into a message
FORMS = (
    lambda text: one_line(f"{text}: cannot be read; see the log"),
    lambda text: one_line(f"key 'data_url' is {text!r}; expected a URL"),
    lambda text: one_line(f"a URL ({text}) of the config"),
    shown,
    lambda text: shown({"url": text}),
    lambda text: shown([f"{'x' * 150} {text}"]),
    lambda text: without_credentials(json.dumps({"a": 1, "url": text})),
)


def test_no_secret_of_a_url_is_shown():
    """Stores, configs and messages refuse or cut each of them, whatever its place."""
    for i, case in enumerate(cases(N_URLS, seed=1)):
        message, turn = [], i // len(PLACES)  # each place comes in each form
        if "://" in case.text or case.place == "URL that pathlib shortened":
            message.append(outputs(case, lambda case=case: normalize_url(case.text)))
        config = (
            {"data_url": case.text},
            {"inputs": [case.text]},
            {"source": {"files": [{"url": case.text}]}},
            {case.text: 1},
        )[turn % 4]
        message.append(outputs(case, lambda config=config: refuse_credentials(config)))
        for form in (turn % len(FORMS), (turn + 3) % len(FORMS)):
            message.append(FORMS[form](case.text))
        assert leaks(case.secret, "\n".join(message)) is None, (case, message)


@pytest.mark.parametrize("option", OPTIONS)
def test_storage_options(option):
    """A value under the name of a secret is one, whatever it looks like."""
    for case in cases(12, seed=1):
        for config in ({"options": {option: case.secret}}, {"a": [{option.upper(): case.secret}]}):
            messages = outputs(case, lambda config=config: refuse_credentials(config))
            assert leaks(case.secret, messages) is None
            if "'" not in case.secret and '"' not in case.secret:
                assert leaks(case.secret, one_line(f"storage_options={config}")) is None
                assert leaks(case.secret, shown(config)) is None


@pytest.mark.parametrize("url", HARMLESS)
def test_urls_without_secrets(url):
    """They are taken, and shown whole."""
    assert not has_credentials(url)
    assert normalize_url(url) == url
    assert one_line(f"{url}: not found") == f"{url}: not found"
    refuse_credentials({"data_url": url, "tls_key": "/etc/key.pem", "seed": 3})


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("https://u:pa/ss@host/x: not found", "https://…@host/x: not found"),
        ("'https://host/x?token=hush' is wrong", "'https://host/x?token=…' is wrong"),
        ("see (https://host/x#jwt=hush).", "see (https://host/x#jwt=…)."),
        ("a;AccountKey=hush== b", "a;AccountKey=… b"),
        ("password=hush host=x", "password=… host=x"),
        ("{'secret': 'hush', 'anon': False}", "{'secret': '…', 'anon': False}"),
    ],
)
def test_what_is_cut(text, cut):
    assert without_credentials(text) == cut


HUSH = "hushHUSH123"
ELSEWHERE = [
    "Authorization: Bearer HUSH",
    "Authorization: Basic HUSH==",
    "authorization: AWS4-HMAC-SHA256 Credential=AKIA/2026, SignedHeaders=host, Signature=HUSH",
    "Proxy-Authorization: Basic HUSH",
    'curl -H "Authorization: Token HUSH" https://host/x',
    "Cookie: theme=dark; session=HUSH",
    "Set-Cookie: sid=HUSH; Path=/",
    "x-api-key: HUSH",
    "X-Vault-Token: HUSH",
    "{'Authorization': 'Bearer HUSH'}",
    "{'Cookie': 'session=HUSH'}",
    "{'X-Amz-Security-Token': 'HUSH'}",
    "<CIMultiDictProxy('Host': 'x', 'Authorization': 'Basic HUSH')>",
    "[('Host', 'x'), ('Authorization', 'Basic HUSH')]",
    "((b'host', b'x'), (b'authorization', b'Bearer HUSH'))",
    "('secret', 'HUSH')",
    '{"a": "{\\"password\\": \\"HUSH\\"}"}',
    "secret_access_key: HUSH",
    "password: HUSH",
    "mount --password HUSH /data",
    "login --token=HUSH",
    "401 for Bearer HUSH",
    "-----BEGIN RSA PRIVATE KEY-----\nHUSH\n-----END RSA PRIVATE KEY-----",
    "Cannot connect to proxy http://me:HUSH@proxy:3128",
]


@pytest.mark.parametrize("text", ELSEWHERE)
def test_secrets_that_are_in_no_url(text):
    """Headers, cookies, options of commands and keys: refused in a config, cut in a message."""
    text = text.replace("HUSH", HUSH)
    for case in (text, [text], {"prologue": [text]}):
        assert has_credentials(case)
    cut = without_credentials(text)
    assert HUSH not in cut
    assert without_credentials(cut) == cut
    assert HUSH not in one_line(f"x: failed ({text}); try again")


@pytest.mark.parametrize(
    "text",
    [
        "send the token: Authorization: Bearer …",
        "Authorization: Bearer …; try again",
        "curl -H 'Authorization: Bearer $(cat serve.token)' http://127.0.0.1:8000/model",
        "curl -H 'Authorization: Bearer $TOKEN' http://127.0.0.1:8000/model",
        "--token-file serve.token",
        "the password: give one",
        "credentials: see the docs",
        "token: ~/.config/a/serve.token",
        "Basic statistics of bags",
        "Bearer authentication is used",
        "columns ['token', 'text']",
        "('key', 'value')",
        "nextPageToken: 5",
    ],
)
def test_texts_without_secrets(text):
    """They are shown whole, and a config may hold them."""
    assert without_credentials(text) == text
    assert not has_credentials([text])


@pytest.mark.long
def test_long_texts_take_no_longer_than_they_are():
    """No word of a message is searched from each of its characters."""
    for text in (
        "a" * 10**6,
        ":" * 10**6,
        "a=" * 10**6,
        "://a:" * 10**5,
        "'a': '" * 10**5,
        "token: " * 10**5,
        "('token', '" * 10**5,
        "--token " * 10**5,
        "Bearer " * 10**5,
        "-----BEGIN PRIVATE KEY-----" * 10**4,
    ):
        assert len(without_credentials(text)) <= len(text) + 10


def test_a_url_with_blanks():
    """The whole text is the URL where it is known to be one."""
    url = "https://me:hush hush\thush@host/a.zarr"
    for call in (BagStore.open, load_model, lambda text: refuse_credentials({"a": text})):
        assert "hush" not in outputs(Case("", url, "hush"), lambda call=call: call(url))


def test_submitted_configs(tmp_path):
    """No run, and no file, is left of a config with a secret."""
    for case in cases(5 * len(PLACES), seed=2):
        config = {"data_url": case.text, "model_url": str(tmp_path / "m.zarr")}
        messages = outputs(
            case, lambda config=config: submit("fit", config, root=tmp_path / "runs")
        )
        assert leaks(case.secret, messages) is None
        with pytest.raises(ConfigError):
            submit("fit", {"a": case.text}, root=tmp_path / "runs")
    assert not list(tmp_path.iterdir())


def test_environment(tmp_path, monkeypatch):
    """A root of runs in the environment is no exception."""
    for case in cases(len(PLACES), seed=3):
        if "://" not in case.text:
            continue
        monkeypatch.setenv("BAGBASIS_RUNS", case.text)
        for args in (
            ["runs"],
            ["attach", "x"],
            ["cancel", "x"],
            ["submit", "fit", *settings(data_url="a", model_url="b")],
        ):
            result = bags(*args)
            assert result.exit_code not in (0, 130)
            assert leaks(case.secret, result.output) is None


def url_keys(config: type[BaseModel], prefix: str = "") -> list[str]:
    """The dotted keys of a config that take a text."""
    keys = []
    for name, field in config.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            keys += url_keys(field.annotation, f"{prefix}{name}.")
        elif "str" in str(field.annotation):
            keys.append(prefix + name)
    return keys


def calls(name: str, rng: np.random.Generator, text: str) -> list[str]:
    """A command line of a job with a text as one of its values."""
    begin = name.replace("-", " ", 1).split() if name.startswith(("test-", "drift-")) else [name]
    keys = [*url_keys(import_job(name).Config), "storage_options.url"]
    key = str(rng.choice(keys))
    more = [[], ["--debug"], ["--json"]][rng.integers(3)]
    if rng.random() < 0.2:
        begin = ["submit", name]
        more = ["--json"] if more == ["--json"] else []
    if name in ("info", "verify", "compact") and begin == [name] and rng.random() < 0.5:
        return [name, text, *more]
    return [*begin, *settings(**{key: json.dumps(text)}), *more]


OTHERS = (
    ["models", "list"], ["models", "rollback"], ["models", "promote"], ["attach"], ["cancel"],
    ["models", "add"], ["models", "add", "r"],
    ["runs", "--root"], ["serve"], ["fit", "--set"], ["fit", "--cluster"], ["submit"], ["config"],
    ["fit"], ["serve", "r", "--token-file"], ["serve", "r", "--host"],
    ["doctor"], ["doctor", "--cluster"], ["generate", "gmm_components", "-o"], ["predict"],
    ["evaluate", "m.zarr", "s.zarr", "-o"],
)  # fmt: skip


@pytest.fixture
def watched(tmp_path, monkeypatch):
    """An empty folder to work in, and the command lines of the processes that are started."""
    started: list[str] = []

    class Recorded(subprocess.Popen):
        def __init__(self, args, *more, **options):
            started.append(str(args))
            super().__init__(args, *more, **options)

    monkeypatch.setattr(subprocess, "Popen", Recorded)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return started


def check_nowhere(case: Case, args: list[str], watched: list[str], caplog) -> None:
    """Call ``bags``, which refuses; look for the secret in all that is printed, logged or left."""
    caplog.clear()
    watched.clear()
    result = bags(*args)
    assert result.exit_code != 0, args
    texts = [result.output, result.stderr, caplog.text, *watched]
    if result.exc_info is not None and not isinstance(result.exception, SystemExit):
        texts += traceback.format_exception(result.exception)
    for path in Path.cwd().rglob("*"):
        texts.append(str(path.relative_to(Path.cwd())))
        if path.is_file():
            texts.append(path.read_text(errors="replace"))
    text = "\n\n".join(texts)
    assert leaks(case.secret, text) is None, (case, args, text)


@pytest.mark.parametrize(
    "name", [name if name == "fit" else pytest.param(name, marks=pytest.mark.long) for name in JOBS]
)
def test_every_job(name, watched, caplog):
    """A secret in each place through each job, at the keys of texts: as a job, or submitted."""
    caplog.set_level(logging.DEBUG)
    rng = np.random.default_rng(len(name))
    for case in cases(N_PER_JOB, seed=sum(map(ord, name))):
        check_nowhere(case, calls(name, rng, case.text), watched, caplog)
    assert not watched


@pytest.mark.long
@pytest.mark.parametrize("begin", OTHERS, ids=" ".join)
def test_every_other_command(begin, watched, caplog):
    """Registries, runs and roots of the other commands; also where a text is no value at all."""
    assert {item.name for item in COMMANDS} >= {item[0] for item in OTHERS} - {*JOBS}
    caplog.set_level(logging.DEBUG)
    for case in cases(N_PER_JOB, seed=4):
        more = ["x"] if begin in (["models", "promote"], ["models", "add"]) else []
        check_nowhere(case, [*begin, case.text, *more], watched, caplog)


class Started(Exception):
    """A process would have been started."""


@pytest.mark.parametrize("launcher", ["local", "sbatch"])
def test_command_lines_of_drivers(launcher, tmp_path, monkeypatch):
    """Every account of a machine can read command lines: keys stay in the environment."""
    started = []

    def popen(args, **options):
        started.extend(map(str, args))
        raise Started

    secret = "wJalrXUtnFEMI/K7MDENG"
    for name in ("AWS_SECRET_ACCESS_KEY", "BAGBASIS_TOKEN", "DASK_GATEWAY__AUTH__KWARGS"):
        monkeypatch.setenv(name, secret)
    monkeypatch.setattr(subprocess, "Popen", popen)
    config = {"data_url": "s3://bucket/private-study.zarr", "model_url": str(tmp_path / "m.zarr")}
    with pytest.raises(Started):
        submit("fit", config, root=tmp_path / "runs", launcher=launcher)
    assert started
    line = " ".join(started)
    assert leaks(secret, line) is None
    assert "private-study" not in line  # what a config says is in the run's folder alone


def test_the_command_line_of_large_bodies(monkeypatch):
    """The server's second process gets the token by no argument."""
    started = []

    class Process:
        def __init__(self, args, **options):
            started.extend(args)

        def __class_getitem__(cls, kind):
            return cls

        def poll(self):
            return 0

    monkeypatch.setattr(subprocess, "Popen", Process)
    bodies = LargeBodies()
    bodies.start()
    assert started == [sys.executable, "-P", "-m", LargeBodies.__module__]
    bodies.end()


@pytest.mark.long
def test_a_process_of_its_own(tmp_path):
    """With the library's log and tracebacks; `test_every_job` has the other places."""
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path)}
    command = [sys.executable, "-m", "bagbasis.jobs", "fit", "--debug"]
    data, model = cases(2, seed=5)
    command += settings(data_url=json.dumps(data.text), model_url=json.dumps(model.text))
    run = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert run.returncode == 2
    for case in (data, model):
        assert leaks(case.secret, run.stdout + run.stderr) is None


def test_a_profile(tmp_path):
    """An address, a directive and an option of a profile."""
    profile = tmp_path / "p.yaml"
    for case in cases(len(PLACES), seed=6):
        for values in (
            {"cluster": "tcp", "address": case.text},
            {"cluster": "slurm", "prologue": [case.text]},
            {"cluster": "gateway", "options": {"password": case.secret}},
        ):
            profile.write_text(json.dumps(values))
            messages = outputs(case, lambda: load_profile(str(profile)))
            assert leaks(case.secret, messages) is None


def test_the_message_says_where_and_what_to_do():
    with pytest.raises(StoreError, match=r"^https://…@host/x: .*environment.*%40"):
        normalize_url("https://u:a/b@host/x")


@pytest.mark.parametrize("n", [6, 9])
def test_every_piece_of_a_secret_is_found(n):
    """The search itself: wherever six characters of it stand, escaped or not."""
    for case in cases(40, seed=n):
        for i in range(len(case.secret) - n + 1):
            shown = case.secret[i : i + n]
            assert leaks(case.secret, f"a text with {shown} in it"), (case.secret, shown)
        assert leaks(case.secret, f"x{quote(case.secret, safe='')[2 : n + 8]}"), case
        assert leaks(case.secret, "a text without it") is None
