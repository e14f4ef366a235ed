"""The command line itself: help, exit codes, failures, interrupts."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import click
import pytest

from bagbasis import BagStore, StoreError
from bagbasis.jobs.job import headings
from tests.jobs.running import CONFIGS, JOBS, bags, cli, done, refused, settings

ROOT = CONFIGS.parent


def python(*args, **options):
    """A Python process in the repository."""
    return subprocess.Popen(
        [sys.executable, *args],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def is_store(url):
    """Whether a store has been made there."""
    try:
        BagStore.open(url)
    except StoreError:
        return False
    return True


def command_of(job):
    """How a job is called: bags test two-sample, bags drift fit."""
    return re.sub("^(test|drift)-", r"\1 ", job)


HEAVY = {"bagbasis.data.bags", "numpy", "dask", "pydantic", "rich", "yaml", "matplotlib"}


@pytest.mark.long
def test_help_imports_nothing_heavy():
    """bags --help answers at once: neither the library nor pydantic is imported for it."""
    code = f"import sys, bagbasis.jobs.cli; print(sorted({HEAVY} & set(sys.modules)))"
    process = python("-c", code)
    assert process.communicate()[0].strip() == "[]"


@pytest.mark.parametrize(
    ("begun", "key"),
    [
        ("fit --set model.embedding.n_", "model.embedding.n_per_dim="),
        ("generate --set params.", "params.n_points="),
        ("test two-sample --set parameters.n_f", "parameters.n_frequencies="),
    ],
)
def test_completing_a_key_imports_nothing_heavy(begun, key):
    """A shell asks at each press of a key: those of a job's config are in a file."""
    code = (
        "import atexit, sys, bagbasis.jobs.cli as cli\n"
        f"atexit.register(lambda: print(sorted({HEAVY} & set(sys.modules))))\n"
        "cli.cli(prog_name='bags')"
    )
    words = {"COMP_WORDS": f"bags {begun}", "COMP_CWORD": str(len(begun.split()))}
    process = python("-c", code, env=os.environ | {"_BAGS_COMPLETE": "zsh_complete"} | words)
    *completed, imported = process.communicate()[0].splitlines()
    assert key in completed
    assert imported == "[]"


def test_help_is_a_command_too():
    """The help of all commands, and of one."""
    assert done("help") == done("--help")
    assert done("help", "test", "two-sample") == done("test", "two-sample", "--help")


def test_help_lists_every_job():
    """bags --help names each job and what it is for."""
    printed = {group: done(*group.split(), "--help") for group in ("", "test", "drift")}
    for job, known in JOBS.items():
        text = known.help
        group, _, name = command_of(job).rpartition(" ")
        assert name in printed[group]
        assert text in printed[group]


def test_every_command_has_a_heading():
    """No command is left out of the help, and none is there twice."""
    listed = sorted(name for names in headings().values() for name in names)
    assert listed == sorted(name for name, first in cli.commands.items() if not first.hidden)
    printed = done("--help")
    assert all(f"{heading}:\n" in printed for heading in headings())


def test_every_command_answers_in_json():
    """--json is an option of each that people call, also of one that was added yesterday."""
    commands = list(cli.commands.values())
    while commands:
        single = commands.pop()
        if isinstance(single, click.Group):
            commands += single.commands.values()
        else:
            assert ["--json"] in [option.opts for option in single.params] or single.hidden, (
                single.name
            )


@pytest.mark.long
def test_json_is_the_report_and_nothing_else(regression, tmp_path):
    """With --json stdout holds what the report does; refusals stay one line on stderr."""
    url, report = regression / "bags.zarr", tmp_path / "report.json"
    printed = done("verify", url, "--json", *settings(report=report))
    assert json.loads(printed) == json.loads(report.read_text())
    assert "Verified" in done("verify", url)
    assert "not found" in refused(1, "verify", "/nowhere/a.zarr", "--json")


@pytest.mark.parametrize(("job", "key"), [("fit", "alpha"), ("tune", "eta"), ("drift fit", "seed")])
def test_help_is_short(job, key):
    """--help fits two screens and has no marks of code; --help-all has types and defaults."""
    short, whole = (done(*job.split(), option) for option in ("--help", "--help-all"))
    assert len(short.splitlines()) < 100 < len(whole.splitlines())
    assert f"{job} --help-all" in short
    assert "`" not in short + whole
    assert key in short
    assert "n_per_dim" not in short
    assert "n_per_dim" in whole
    assert "default" in whole
    assert "a string; required" in " ".join(whole.split())
    assert "required: " in short


@pytest.mark.parametrize("words", [("test", "two-sample"), ("test-two-sample",)])
def test_jobs_have_the_names_that_people_type(words):
    """Errors, lists and examples say "test two-sample", as the command is called."""
    assert "a_url" in done("config", *words)
    line = refused(2, "test", "two-sample")
    assert line.startswith("bags: test two-sample: ")
    assert "bags config test two-sample > test-two-sample.yaml" in line
    line = refused(2, "config", "tets fit")
    assert "did you mean 'test fit'" in line
    assert "drift-fit" not in line
    assert "too many arguments: 'x'" in refused(2, "config", *words, "x")


@pytest.mark.parametrize(
    ("word", "advice"),
    [
        ("data_url=bags.zarr", "a key is set by --set data_url=bags.zarr"),
        ("model.alpha=1", "a key is set by --set model.alpha=1"),
        ("--data-url", "--set data_url=VALUE"),
    ],
)
def test_keys_that_are_written_as_words_or_options(word, advice):
    assert advice in refused(2, "fit", word, "bags.zarr")


def test_a_folder_with_an_equals_sign_is_a_place(tmp_path, monkeypatch):
    """As folders of Hive have."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "year=2024").mkdir()
    assert "year=2024: no bag store yet" in refused(1, "info", "year=2024")


def test_module_and_script_are_the_same():
    """python -m bagbasis.jobs is bags."""
    out, err = python("-m", "bagbasis.jobs", "--version").communicate()
    assert "bags" in out
    assert err == ""


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["fitt"], "'fitt'. Did you mean 'fit'?"),
        (["fit", "--sett", "a=1"], "'--set'?"),
        (["submit", "tun"], "no job 'tun' (did you mean 'tune'?)"),
        (["fit", "a.yaml", "b.yaml"], "b.yaml"),
        (["verify", "--cluster", "local", "x.zarr"], "--cluster"),
        (["fit", "--set"], "--set"),
    ],
)
def test_wrong_command_line_is_one_line(args, message):
    """Unknown jobs and options end with one line and exit code 2."""
    assert message in refused(2, *args)


def test_missing_store_is_one_line():
    """A store that is not there: exit code 1 and its name."""
    assert "/nowhere/a.zarr: not found" in refused(1, "verify", "/nowhere/a.zarr")
    assert "/nowhere/a.zarr: not found" in refused(1, "info", "/nowhere/a.zarr")
    urls = settings(data_url="/nowhere/a.zarr", model_url="/nowhere/m.zarr", out_dir="/nowhere/o")
    assert "/nowhere/m.zarr" in refused(1, "evaluate", *urls)
    urls = settings(data_url="/nowhere/a.zarr", model_url="/nowhere/m.zarr")
    assert "/nowhere/a.zarr: not found" in refused(1, "fit", *urls)


def test_unreachable_cluster_and_unknown_profile(regression, tmp_path):
    """No such profile: exit code 2. No scheduler at the address: exit code 1."""
    urls = settings(data_url=regression / "bags.zarr", model_url=tmp_path / "m.zarr")
    assert "no cluster profile 'nope'" in refused(2, "fit", *urls, "--cluster", "nope")
    profile = tmp_path / "far.yaml"
    profile.write_text("cluster: tcp\naddress: tcp://127.0.0.1:9\ntimeout: 0.5\n")
    assert "tcp://127.0.0.1:9" in refused(1, "fit", *urls, "--cluster", profile)


def test_debug_shows_the_traceback():
    """--debug adds the traceback to the line."""
    result = bags("verify", "/nowhere/a.zarr", "--debug")
    assert result.exit_code == 1
    assert "Traceback" in result.stderr
    assert result.stderr.splitlines()[-1].startswith("bags: verify: /nowhere/a.zarr")


def test_unexpected_error_is_one_line(monkeypatch):
    """An error nobody planned for is one line too, and says how to see more."""

    def broken(url):
        raise KeyError("surprise")

    monkeypatch.setattr(BagStore, "open", broken)
    line = refused(1, "verify", "/nowhere/a.zarr")
    assert "KeyError: 'surprise'" in line
    assert "--debug" in line


@pytest.mark.long
def test_interrupt_is_one_line_and_leaves_a_store(tmp_path):
    """Ctrl-C ends generate with exit code 130 and one line; the store can be opened."""
    url = tmp_path / "bags.zarr"
    many = settings(n_bags=100_000_000, url=url)
    process = python(
        *("-m", "bagbasis.jobs", "generate", "gmm_components", *many),
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # tests may ignore it
    )
    while not is_store(url):
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate()
    assert (process.returncode, out) == (130, "")
    assert [line for line in err.splitlines() if line] == ["bags: interrupted"]
    BagStore.open(url).verify()


@pytest.mark.long
def test_reads_and_writes_left_by_an_interrupt_end_without_a_word(tmp_path):
    """Tasks that an interrupt leaves in Zarr's loop are cancelled when the process ends."""
    url = str(tmp_path / "bags.zarr")
    BagStore.create(url, 2)
    code = f"""
import asyncio
from bagbasis import BagStore
BagStore.open({url!r})
from zarr.core.sync import _get_loop
asyncio.run_coroutine_threadsafe(asyncio.sleep(600), _get_loop())
"""
    assert python("-c", code).communicate() == ("", "")


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_second_interrupt_ends_a_job_that_does_not_listen(name):
    """Where KeyboardInterrupt does not get through, the second Ctrl-C ends the process; so does
    SIGTERM, by which queues end drivers."""
    code = f"""
import os, signal, time
from jobs.interrupts import prompt_interrupts
signal.signal(signal.{name}, lambda *args: None)
with prompt_interrupts(lambda: os._exit(7)):
    os.kill(os.getpid(), signal.{name})
    os.kill(os.getpid(), signal.{name})
    while True:
        time.sleep(1)
"""
    process = python("-c", code)
    try:
        process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 7


def test_interrupts_are_put_back():
    """After a job, Ctrl-C is what it was before."""
    handler = signal.getsignal(signal.SIGINT)
    refused(1, "verify", "/nowhere/a.zarr")
    assert signal.getsignal(signal.SIGINT) is handler
    assert signal.set_wakeup_fd(-1) == -1


@pytest.mark.parametrize("ending", ["yml", "json"])
def test_local_directory_is_not_taken_for_a_config(tmp_path, monkeypatch, ending):
    """A dataset's name, a URL and a config of YAML or JSON are told apart by their ending."""
    monkeypatch.chdir(tmp_path)
    job = f"job.{ending}"
    Path(job).write_text('{"dataset": "digits", "url": "digits.zarr", "n_bags": 12}')
    done("generate", job)
    Path(job).write_text("{}")
    assert f"{job}: missing keys 'data_url' (" in refused(2, "fit", job)
    assert "``" not in refused(2, "ingest", job)
    assert "12" in done("info", "digits.zarr")
    done("verify", "digits.zarr")
