"""Secrets: random ones in every place of a URL, searched for in all that is written or printed."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import traceback
from pathlib import Path

import numpy as np
import pytest
from pydantic import BaseModel

from bagbasis import BagStore
from bagbasis.core.config_errors import refuse_credentials
from bagbasis.core.credentials import has_credentials, without_credentials
from bagbasis.core.errors import BagbasisError, ConfigError, StoreError, one_line, shown
from bagbasis.data.storage.urls import normalize_url
from bagbasis.execution.clusters.profiles import load_profile
from bagbasis.jobs.other_commands import COMMANDS
from bagbasis.jobs.runs import submit
from bagbasis.jobs.shell import JOBS, import_job
from tests.data.storage.secret_urls import OPTIONS, PLACES, Case, cases, leaks
from tests.jobs.running import bags, settings

N_URLS, N_PER_JOB = 10_000, 50
JOB = settings(data_url="a", model_url="b")
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


@pytest.mark.parametrize(
    ("n", "seed"), [(40 * len(PLACES), 1), pytest.param(N_URLS, 20261127, marks=pytest.mark.long)]
)
def test_no_secret_of_a_url_is_shown(n, seed):
    """Stores, configs and messages refuse or cut each of them, whatever its place."""
    for case in cases(n, seed):
        said = []
        if "://" in case.text or case.place == "URL that pathlib shortened":
            said.append(outputs(case, lambda case=case: normalize_url(case.text)))
        for config in (
            {"data_url": case.text},
            {"inputs": [case.text]},
            {"source": {"files": [{"url": case.text}]}},
            {case.text: 1},
        ):
            said.append(outputs(case, lambda config=config: refuse_credentials(config)))
        said += [
            one_line(f"{case.text}: cannot be read; see the log"),
            one_line(f"key 'data_url' is {case.text!r}; expected a URL"),
            one_line(f"a URL ({case.text}) of the config"),
            shown(case.text),
            shown({"url": case.text}),
            shown([f"{'x' * 150} {case.text}"]),
            without_credentials(json.dumps({"a": 1, "url": case.text})),
        ]
        assert leaks(case.secret, "\n".join(said)) is None, (case, said)


@pytest.mark.parametrize("option", OPTIONS)
def test_storage_options(option):
    """A value under the name of a secret is one, whatever it looks like."""
    for case in cases(12, seed=1):
        for config in ({"options": {option: case.secret}}, {"a": [{option.upper(): case.secret}]}):
            said = outputs(case, lambda config=config: refuse_credentials(config))
            assert leaks(case.secret, said) is None
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


def test_long_texts_take_no_longer_than_they_are():
    """No word of a message is searched from each of its characters."""
    for text in ("a" * 10**6, ":" * 10**6, "a=" * 10**6, "://a:" * 10**5, "'a': '" * 10**5):
        assert len(without_credentials(text)) <= len(text) + 10


def test_a_url_with_blanks():
    """The whole text is the URL where it is known to be one."""
    url = "https://me:hush hush\thush@host/a.zarr"
    assert "hush" not in outputs(Case("", url, "hush"), lambda: BagStore.open(url))
    assert "hush" not in outputs(Case("", url, "hush"), lambda: refuse_credentials({"a": url}))


def test_submitted_configs(tmp_path):
    """No run, and no file, is left of a config with a secret."""
    for case in cases(5 * len(PLACES), seed=2):
        config = {"data_url": case.text, "model_url": str(tmp_path / "m.zarr")}
        said = outputs(case, lambda config=config: submit("fit", config, root=tmp_path / "runs"))
        assert leaks(case.secret, said) is None
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
    for text in texts:
        assert leaks(case.secret, text) is None, (case, args, text)


@pytest.mark.long
@pytest.mark.parametrize("name", JOBS)
def test_every_job(name, watched, caplog):
    """Fifty secrets through each job, at the keys that take a text: as a job, or submitted."""
    caplog.set_level(logging.DEBUG)
    rng = np.random.default_rng(len(name))
    for case in cases(N_PER_JOB, seed=sum(map(ord, name))):
        check_nowhere(case, calls(name, rng, case.text), watched, caplog)
    assert not watched


@pytest.mark.long
@pytest.mark.parametrize("begin", OTHERS, ids=" ".join)
def test_every_other_command(begin, watched, caplog):
    """Registries, runs and roots of the other commands; also where a text is no value at all."""
    assert {one.name for one in COMMANDS} >= {one[0] for one in OTHERS} - {"fit"}
    caplog.set_level(logging.DEBUG)
    for case in cases(N_PER_JOB, seed=4):
        more = ["x"] if begin in (["models", "promote"], ["models", "add"]) else []
        check_nowhere(case, [*begin, case.text, *more], watched, caplog)


def test_a_job(watched, caplog):
    """Each place once through one job: the rest takes longer."""
    rng = np.random.default_rng(0)
    for case in cases(len(PLACES), seed=7):
        check_nowhere(case, calls("fit", rng, case.text), watched, caplog)


@pytest.mark.long
def test_a_process_of_its_own(tmp_path):
    """Each place once, with the library's log and tracebacks."""
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path)}
    for case in cases(len(PLACES), seed=5):
        command = [sys.executable, "-m", "bagbasis.jobs", "fit", "--debug"]
        command += settings(data_url=json.dumps(case.text), model_url="m.zarr")
        run = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert run.returncode == 2
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
            said = outputs(case, lambda: load_profile(str(profile)))
            assert leaks(case.secret, said) is None


def test_the_message_says_where_and_what_to_do():
    with pytest.raises(StoreError, match=r"^https://…@host/x: .*environment.*%40"):
        normalize_url("https://u:a/b@host/x")
