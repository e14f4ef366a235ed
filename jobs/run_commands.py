"""``bags submit | runs | attach | cancel``: jobs that run by themselves."""

from __future__ import annotations

import time
from typing import Any

import click

from bagbasis.errors import ConfigError

from .shell import JOBS, exit_guarded, give_up, import_job

ROOT = click.option("--root", metavar="URL", help="Where the runs' folders are (BAGBASIS_RUNS).")
WATCH_SECONDS = 1.0


@click.command()
@click.argument("job")
@click.argument("path", required=False, metavar="[CONFIG.yaml]")
@click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    help="Set a key of the config, dotted for a key in a section; the value is YAML.",
)
@click.option("--cluster", metavar="WHERE", help="none, local, tcp://HOST:PORT, or a profile.")
@click.option(
    "--launcher",
    default="local",
    show_default=True,
    help="local or sbatch: how its driver is started.",
)
@click.option("--resume", "resumed", metavar="RUN", help="Go on with a run that died or failed.")
@ROOT
def submit(
    job: str,
    path: str | None,
    overrides: tuple[str, ...],
    cluster: str | None,
    launcher: str,
    resumed: str | None,
    root: str | None,
) -> None:
    """Start JOB in a process that outlives this one; prints the run's id and how to follow it."""

    def action() -> None:
        from .config import load_config
        from .runs import attach, resume
        from .runs import submit as submitted
        from .runs.submission import check_unchanged

        kind = _config_of(job)
        given = {} if cluster is None else {"cluster": cluster}
        if resumed is not None and path is None and not overrides and not given:
            run = resume(resumed, root=root)
        else:
            config = load_config(kind, path, overrides, given)
            if resumed is None:
                values = config.model_dump(mode="json", exclude_unset=True)
                run = submitted(job, values, root=root, launcher=launcher)
            else:
                run = attach(resumed, root=root)
                before = load_config(kind, None, (), run.record()["config"])
                check_unchanged(before.model_dump(), config.model_dump(), run.id)
                run = resume(run)
        click.echo(f"{run.id}\nbags attach {run.url}")

    exit_guarded("submit", action)


@click.command()
@ROOT
def runs(root: str | None) -> None:
    """List the runs of a root, the oldest first."""

    def action() -> None:
        from .runs import runs_in
        from .terminal import Terminal

        rows = []
        for run in runs_in(root):
            state = run.state()
            share = f"{100 * state.done / state.total:.0f} %" if state.total else ""
            begun = time.strftime("%Y-%m-%d %H:%M", time.localtime(state.submitted))
            launched = run.record().get("launched", {})  # older runs do not say
            where = ", ".join(f"{key} {value}" for key, value in launched.items())
            rows.append([run.id, str(state.status), state.step, share, begun, where])
        columns = ["run", "status", "step", "done", "submitted", "driver"]
        Terminal().table("Runs", columns, rows, whole=("run",))

    exit_guarded("runs", action)


@click.command()
@click.argument("run")
@ROOT
def attach(run: str, root: str | None) -> None:
    """Follow RUN (an id, or its folder's URL) to its end. Ctrl-C leaves it running."""

    def action() -> None:
        from bagbasis.errors import RunError

        from .runs import attach as attached
        from .runs.run import explained
        from .terminal import Terminal

        console = Terminal()
        found = attached(run, root=root)
        with console.progress(found.record()["job"]) as progress:
            while not (state := found.state()).status.is_over:
                if state.total:
                    progress(state.done, state.total)
                time.sleep(WATCH_SECONDS)
        if state.report is None:
            raise RunError(f"run {found.id} {explained(state)}")
        console.values(f"Run {found.id}", state.report)

    exit_guarded("attach", action)


@click.command()
@click.argument("run")
@ROOT
def cancel(run: str, root: str | None) -> None:
    """Ask RUN to stop; it does within seconds."""

    def action() -> None:
        from .runs import attach as attached

        attached(run, root=root).cancel()

    exit_guarded("cancel", action)


@click.command(hidden=True)
@click.argument("url")
@click.option("--attempt", required=True)
@click.option("--log", required=True)
def drive(url: str, attempt: str, log: str) -> None:
    """What a launcher starts."""

    def action() -> None:
        from .runs.driver import run_driver

        run_driver(url, attempt, log, give_up)

    exit_guarded("drive", action)


def _config_of(job: str) -> Any:
    if job not in JOBS:
        raise ConfigError(f"no job {job!r}; there are {', '.join(JOBS)}")
    return import_job(job).Config


RUN_COMMANDS = (submit, runs, attach, cancel, drive)
