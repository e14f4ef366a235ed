"""Submits a job: writes its config down and starts its driver; the client is free then."""

from __future__ import annotations

import json
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

from bagbasis.core import Instance, TextMapping, UrlOrPath, checked
from bagbasis.core.config_errors import differences, refuse_credentials
from bagbasis.core.errors import ConfigError, ParameterError, RunError, WriterBusyError, shown
from bagbasis.core.saved import Format
from bagbasis.core.versions import DISTRIBUTED, versions_of
from bagbasis.data.storage.files import PRIVATE, json_bytes, storage_errors, write_json
from bagbasis.data.storage.lock import Hold, writer_lock
from bagbasis.data.storage.urls import ICECHUNK, local_path, normalize_url, working_folder

from ..job import JOBS
from ..shell import check_job
from .launchers import LAUNCHERS, open_log
from .record import CANCEL, CHECKPOINTS, LOCK, LOG, RUN, Status, read_record
from .roots import remember, root_of
from .run import Run, attach

_FORMAT = Format("run", key="format")
OUTPUT_KEYS = ("model_url", "output_url", "out_dir", "url")  # keys of a job's outputs


@checked
def submit(
    job: str,
    config: TextMapping,
    *,
    profile: str | None = None,
    root: UrlOrPath | None = None,
    launcher: str = "local",
) -> Run:
    """Start a job in a process that outlives this one; returns at once.

    Parameters
    ----------
    job : str
        As on the command line: "fit", "evaluate", …
    config : mapping
        The keys of the job's YAML file.
    profile : str, optional
        The cluster it runs on, instead of the config's ``cluster``.
    root : URL or path, optional
        Where the run's folder goes. Default: the environment's BAGBASIS_RUNS, else ``runs`` next to
        the job's output.
    launcher : str
        How the driver is started, of `LAUNCHERS`.

    Raises
    ------
    ParameterError
        An argument of another type, or an empty profile.
    ConfigError
        A job or a launcher that is not there, no place for the run, or a config with credentials,
        or with values that JSON does not have.
    StoreError, RunError
        The place cannot be written, or the driver cannot be started.
    """
    if profile == "":
        raise ParameterError(
            "profile is ''; expected 'none', 'local', a scheduler's address or the name of a "
            "profile; leave it out for the config's own"
        )
    check_job(job)  # it goes into the name of the run's folder
    if launcher not in LAUNCHERS:
        raise ConfigError(f"no launcher {launcher!r}; there are {', '.join(sorted(LAUNCHERS))}")
    values = _as_json(dict(config) | ({"cluster": profile} if profile is not None else {}))
    refuse_credentials(values)
    run_id = f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{job}-{uuid.uuid4().hex[:6]}"
    place = normalize_url(root_of(root) or beside_output(values))
    url = f"{place}/{run_id}"
    if JOBS[job].checkpoints and values.get("checkpoints") is None:
        values["checkpoints"] = f"{url}/{CHECKPOINTS}"
    record = {
        "id": run_id,
        "job": job,
        "config": values,
        "versions": versions_of(DISTRIBUTED),
        "python": sys.version.split()[0],
        "launcher": launcher,
        "folder": str(working_folder()),
    }
    with _holding(url) as hold:
        run = _start(hold, _FORMAT.stamp(record))
    remember(place)
    return run


@checked
def resume(
    run: str | Annotated[Run, Instance()],
    config: TextMapping | None = None,
    *,
    root: UrlOrPath | None = None,
) -> Run:
    """Start a run again that died, failed or was cancelled; a fit does only what is missing.

    Parameters
    ----------
    run : str or Run
    config : mapping, optional
        Config that the run is believed to have; compared with the one it was started with.

    Raises
    ------
    ParameterError
        An argument of another type.
    ConfigError
        A key that has changed since; it is named.
    RunError
        No such run, or one that is running or done.
    """
    known = run if isinstance(run, Run) else attach(run, root=root)
    with _holding(known.url) as hold:
        record = read_record(known.url, hold)
        if config is not None:
            check_unchanged(record["config"], config, known.id)
        status = known.status()
        if not status.is_over or status is Status.DONE:
            raise RunError(
                f"run {known.id} is {status}; only one that died, failed or was cancelled "
                "can be resumed"
            )
        return _start(hold, record)


def _as_json(config: dict[str, Any]) -> dict[str, Any]:
    """Return a config as a driver reads it; ConfigError where JSON cannot hold it."""
    try:
        values: dict[str, Any] = json.loads(json_bytes(config))
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigError(
            f"config is {shown(config)}; it cannot be written as JSON ({error})"
        ) from error
    return values


def check_unchanged(before: Mapping[str, Any], now: Mapping[str, Any], run_id: str) -> None:
    """Raise ConfigError naming the first key, dotted, in which two configs differ.

    ``checkpoints`` may be left out: a run has its own.
    """
    for key, old, new in differences(before, now):
        if key != "checkpoints" or new is not None:
            raise ConfigError(
                f"key {key!r} is {new!r}, run {run_id} was started with {old!r}; resume it as it "
                "was, or submit another run"
            )


def beside_output(config: Mapping[str, Any]) -> str:
    """Return the URL of ``runs`` in the folder of the job's output."""
    for key in OUTPUT_KEYS:
        if isinstance(config.get(key), str):
            # Icechunk keeps bag stores only: the run lies next to one on the same filesystem
            output = normalize_url(config[key].removeprefix(ICECHUNK))
            parent, slash, _ = output.rpartition("/")
            if slash and parent:
                return f"{parent}/runs"
    raise ConfigError(
        f"the config names no output ({', '.join(OUTPUT_KEYS)}) to keep the run beside; give a root"
    )


@contextmanager
def _holding(url: str) -> Iterator[Hold]:
    """Hold a run's folder, so that of two clients that submit it again only one succeeds."""
    try:
        with writer_lock(url, lock_name=LOCK, make=True, private=True) as hold:
            yield hold
    except WriterBusyError as error:
        raise RunError(f"{url}: somebody else submits this run at the moment") from error


def _start(hold: Hold, record: dict[str, Any]) -> Run:
    url = hold.url
    record = {**record, "submitted": time.time(), "attempt": uuid.uuid4().hex}
    log = local_log(url)
    with storage_errors(log, "the driver cannot be started", kind=RunError):
        open_log(log).close()  # a queue would make it as the umask says
    hold.write(RUN, json_bytes(record))
    # -P: the driver imports no script of the folder it starts in, whatever its name
    command = [sys.executable, "-P", "-m", "bagbasis.jobs", "drive", url]
    command += ["--attempt", record["attempt"], "--log", str(log)]
    try:
        launched = LAUNCHERS[record["launcher"]](command, log, record["id"])
    except RunError:
        nobody_waits = {"attempt": record["attempt"]}
        write_json(f"{url}/{CANCEL}", nobody_waits, mode=PRIVATE)
        raise
    hold.write(RUN, json_bytes({**record, "launched": launched}))
    return Run(url)


def local_log(url: str) -> Path:
    """Return where the driver prints: into the run's folder, or a file that is copied there."""
    folder = local_path(url)
    if folder is not None:
        return folder / LOG
    return Path(tempfile.gettempdir(), f"bagbasis-{url.rpartition('/')[2]}.log")
