"""The commands of ``bags`` that are not jobs: ``config``, ``submit``, ``models`` and so on."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from bagbasis.core.errors import ConfigError, RunError

from .answers import answer, command_terminal, print_line
from .completions import SHELLS, complete_clusters, complete_jobs, complete_keys, script
from .job import called, job_of
from .shell import check_job, give_up, guarded, import_job

if TYPE_CHECKING:
    from bagbasis.operations import ModelRecord, Registry

    from .pictures.model_part import JobModel

logger = logging.getLogger(__name__)

WATCH_SECONDS = 1.0  # interval at which an attached run is looked at

SET_OPTION = click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    shell_complete=complete_keys,
    help="Set a key of the config, dotted for a key in a section; the value is YAML.",
)
CLUSTER_OPTION = click.option(
    "--cluster",
    metavar="WHERE",
    shell_complete=complete_clusters,
    help="none (this process), local, tls://HOST:PORT, or a profile.",
)
ROOT_OPTION = click.option(
    "--root", metavar="URL", help="Where the runs' folders are (BAGBASIS_RUNS)."
)
REGISTRY = click.argument("url", metavar="REGISTRY_URL")


def guarded_command(function: Callable[..., Mapping[str, Any] | None]) -> Callable[..., None]:
    """Answer with what a command returns; turn an error into one line and an exit code."""

    @wraps(function)
    def call(*args: object, **values: object) -> None:
        context = click.get_current_context()
        # without the program's name, which may contain blanks: python -m bagbasis.jobs
        name = context.command_path.removeprefix(context.find_root().command_path).strip()

        def run() -> None:
            report = function(*args, **values)
            if report is not None:
                answer(report)

        context.exit(guarded(name, run))

    return call


@click.command()
@click.argument("words", nargs=-1, required=True, metavar="JOB", shell_complete=complete_jobs)
@guarded_command
def config(words: tuple[str, ...]) -> dict[str, Any]:
    """Print the config of JOB: bags config fit > fit.yaml."""
    from bagbasis.core.yaml_text import parse_yaml

    from .configs.printed import config_text

    job, more = job_of(words)
    if more:
        raise ConfigError(f"too many arguments: {more[0]!r}; expected one job")
    check_job(job)
    text = config_text(job)
    print_line(text.removesuffix("\n"))
    return {"job": job, "config": parse_yaml(text.encode(), job)}


@click.command("submit")
@click.argument(
    "words", nargs=-1, required=True, metavar="JOB [CONFIG.yaml]", shell_complete=complete_jobs
)
@SET_OPTION
@CLUSTER_OPTION
@click.option(
    "--launcher",
    default="local",
    show_default=True,
    help="local or sbatch: how its driver is started.",
)
@click.option("--resume", "resumed", metavar="RUN", help="Go on with a run that died or failed.")
@ROOT_OPTION
@guarded_command
def submit_job(
    words: tuple[str, ...],
    overrides: tuple[str, ...],
    cluster: str | None,
    launcher: str,
    resumed: str | None,
    root: str | None,
) -> dict[str, str]:
    """Start JOB in the background; print the run's id.

    The process outlives this one. `bags attach RUN` follows it.
    """
    from .configs.config import load_config
    from .runs import attach, resume, submit
    from .runs.submission import check_unchanged

    job, more = job_of(words)
    if len(more) > 1:
        raise ConfigError(f"too many arguments: {more[1]!r}; expected JOB [CONFIG.yaml]")
    path = more[0] if more else None
    check_job(job)
    kind = import_job(job).Config
    arguments = {} if cluster is None else {"cluster": cluster}
    if resumed is not None and path is None and not overrides and not arguments:
        run = resume(resumed, root=root)
    else:
        loaded = load_config(kind, path, overrides, arguments, called(job))
        if resumed is None:
            values = loaded.model_dump(mode="json", exclude_unset=True)
            run = submit(job, values, root=root, launcher=launcher)
        else:
            run = attach(resumed, root=root)
            before = load_config(kind, None, (), run.record()["config"])
            check_unchanged(before.model_dump(), loaded.model_dump(), run.id)
            run = resume(run)
    print_line(f"{run.id}\nbags attach {run.url}")
    return {"run": run.id, "url": run.url}


@click.command()
@ROOT_OPTION
@guarded_command
def runs(root: str | None) -> dict[str, Any]:
    """List runs, the oldest first.

    Without --root and BAGBASIS_RUNS: those of every root that you have submitted to.
    """
    from .runs import runs_in

    rows, listed = [], []
    for run in runs_in(root):
        state = run.state()
        listed.append({"run": run.id, "url": run.url, **asdict(state)})
        share = f"{100 * state.done / state.total:.0f} %" if state.total else ""
        begun = time.strftime("%Y-%m-%d %H:%M", time.localtime(state.submitted))
        launched = run.record().get("launched", {})  # older runs have no such key
        where = ", ".join(f"{key} {value}" for key, value in launched.items())
        rows.append([run.id, str(state.status), state.step, share, begun, where])
    columns = ["run", "status", "step", "done", "submitted", "driver"]
    command_terminal().table("Runs", columns, rows, whole=("run",))
    return {"runs": listed}


@click.command("attach")
@click.argument("run")
@ROOT_OPTION
@guarded_command
def follow_run(run: str, root: str | None) -> dict[str, Any]:
    """Follow RUN (an id, or its folder's URL) to its end. Ctrl-C leaves it running."""
    from .runs import attach
    from .runs.run import explain_failure

    console = command_terminal()
    followed = attach(run, root=root)
    try:
        with console.progress(followed.record()["job"]) as progress:
            while not (state := followed.state()).status.is_over:
                if state.total:
                    progress(state.done, state.total)
                time.sleep(WATCH_SECONDS)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"the run goes on: `bags attach {followed.url}` follows it again, `bags cancel "
            f"{followed.url}` stops it"
        ) from None
    if state.report is None:
        raise RunError(f"run {followed.id} {explain_failure(state)}")
    console.values(f"Run {followed.id}", state.report)
    return state.report


@click.command()
@click.argument("run")
@ROOT_OPTION
@guarded_command
def cancel(run: str, root: str | None) -> dict[str, str]:
    """Ask RUN to stop; it does within seconds."""
    from .runs import attach

    cancelled = attach(run, root=root)
    cancelled.cancel()
    return {"run": cancelled.id, "url": cancelled.url}


@click.command(hidden=True)
@click.argument("url")
@click.option("--attempt", required=True)
@click.option("--log", required=True)
@guarded_command
def drive(url: str, attempt: str, log: str) -> None:
    """Run a submitted job; this is what a launcher starts."""
    from .runs.driver import run_driver

    run_driver(url, attempt, log, give_up)


@click.command()
@REGISTRY
@click.option("--host", default="127.0.0.1", show_default=True, help="Where to listen.")
@click.option("--port", default=8000, show_default=True, help="0: any that is free.")
@click.option("--token-file", metavar="FILE", help="What clients have to send; made if need be.")
@click.option("--certificate", metavar="FILE", help="PEM, for TLS; beyond loopback it has to be.")
@click.option("--key", metavar="FILE", help="PEM, of the certificate.")
@guarded_command
def serve(
    url: str, host: str, port: int, token_file: str | None, certificate: str | None, key: str | None
) -> None:
    """Answer prediction requests with a champion.

    The champion is the current one of the registry at REGISTRY_URL.

    POST /predict takes {"bag": [[…], …]} or {"bags": […]} as JSON; GET /health, GET /model.
    """
    from .commands.serving.serve import serve_registry

    def tell(service: Mapping[str, Any]) -> None:
        served, token = f"{service['url']} serves {service['model']}", service["token_file"]
        print_line(f"{served}; clients send the token in {token}")
        answer(service)

    serve_registry(url, host, port, token_file, (certificate, key), tell)


@click.group()
def models() -> None:
    """Add, show and choose the models of a registry."""


@models.command("add")
@REGISTRY
@click.argument("model", metavar="MODEL_URL")
@click.option("--promote", is_flag=True, help="Make it the champion, which is served.")
@guarded_command
def add_model(url: str, model: str, promote: bool) -> dict[str, Any]:
    """Add the saved model at MODEL_URL to the registry.

    MODEL_URL is a model of bags fit or bags tune. Prints the name of the model in the registry.
    """
    from bagbasis.operations import Registry

    registry = Registry(url)
    name = registry.register(model)
    if promote:
        before = registry.current()
        registry.promote(name)
        _tell_other_kind(registry, before, name)
    champion = registry.current()
    if champion == name:
        print_line(f"{name} is the champion; serve it with: bags serve {url}")
    else:
        print_line(f"{name}\nmake it the champion with: bags models promote {url} {name}")
    return {"model": name, "champion": champion}


@models.command("list")
@REGISTRY
@guarded_command
def list_models(url: str) -> dict[str, Any]:
    """List the models, the oldest first; * is the champion."""
    from bagbasis.core.errors import ModelError
    from bagbasis.operations import Registry

    records = Registry(url).list()
    if not records:
        raise ModelError(
            f"{url}: no registry there, or one without models; bags models add {url} MODEL adds one"
        )
    columns = ["", "model", "registered", "estimator", "judged"]
    rows = [_row(record) for record in records]
    terminal = command_terminal()
    terminal.table("Models", columns, rows, whole=("model",))
    if sum(record.error is not None for record in records) > 1 and not terminal.tsv:
        terminal.line(
            "Errors of different measures or bags do not compare; judge models on the same bags: "
            "bags evaluate MODEL DATA -o OUT"
        )
    return {"models": [asdict(record) for record in records]}


@models.command()
@REGISTRY
@click.argument("name")
@guarded_command
def promote(url: str, name: str) -> dict[str, str | None]:
    """Make the model NAME the champion; it is read and checked first."""
    from bagbasis.operations import Registry

    registry = Registry(url)
    before = registry.current()
    registry.promote(name)
    _tell_other_kind(registry, before, name)
    if before == name:
        print_line(f"{name} is the champion already; nothing changed")
    else:
        print_line(f"the champion is {name}, {_before(before)}")
    return {"champion": name, "before": before}


@models.command()
@REGISTRY
@guarded_command
def rollback(url: str) -> dict[str, str | None]:
    """Make the champion before the current one champion again."""
    from bagbasis.operations import Registry

    registry = Registry(url)
    before = registry.current()
    name = registry.rollback()
    print_line(f"the champion is {name} again, {_before(before)}")
    return {"champion": name, "before": before}


def _row(record: ModelRecord) -> list[str]:
    """Return the champion's mark, name, time, estimator, and numbers of the fit and report."""
    of_error = ("measure", "error", "standard_error") if "measure" in record.report else ()
    report = {key: value for key, value in record.report.items() if key not in of_error}
    numbers = [("bags", record.fit.get("n_bags_fitted")), *report.items()]
    shown = [
        f"{name} {value:,}" if isinstance(value, int) else f"{name} {value:.4g}"
        for name, value in numbers
        if isinstance(value, (int, float)) and not isinstance(value, bool)
    ]
    shown += [record.error] if record.error else []
    return [
        "*" if record.current else "",
        record.name,
        record.created[:16].replace("T", " "),
        record.estimator,
        ", ".join(shown) if record.damage is None else f"damaged: {record.damage}",
    ]


def _tell_other_kind(registry: Registry, before: str | None, name: str) -> None:
    """Warn if a new champion predicts something else, or from other coordinates, than the last."""
    from bagbasis.core.errors import BagbasisError

    from .commands.model_place import open_model

    if before is None or before == name:
        return
    try:
        models = [open_model(registry.model_url(each)) for each in (before, name)]
    except BagbasisError:  # the last one is damaged, or a network whose packages are missing
        return
    compared: dict[str, list[Any]] = {
        "is": [_kind_of(model) for model in models],
        "takes the coordinates": [_coordinates_of(model) for model in models],
    }
    for what, values in compared.items():
        if values[0] != values[1]:
            logger.warning(
                "%s %s %s; the champion before, %s, %s", name, what, values[1], before, values[0]
            )


def _kind_of(model: JobModel) -> str:
    """Return the kind of a model and the names of its targets, which bags in memory lack."""
    names = ", ".join(map(repr, model.target_names_))
    return f"{type(model).__name__} of {names}" if names else type(model).__name__


def _coordinates_of(model: JobModel) -> list[str] | int:
    """Return the names of a model's coordinates in alphabetical order, or their number."""
    names: list[str] | None = model.report_.get("coordinates")
    return model.model_.features.n_dims if names is None else sorted(names)


def _before(name: str | None) -> str:
    return "the first one" if name is None else f"instead of {name}"


@click.command("warm-up")
@guarded_command
def warm_up_kernels() -> dict[str, Any]:
    """Compile all kernels now, so that no fit waits."""
    from .warm_up import warm_up

    compiled = {}
    for name, seconds in warm_up():
        print_line(f"{name}: {seconds:.1f} s")
        compiled[name] = seconds
    return {"seconds": compiled}


@click.command()
@click.argument("stores", nargs=-1, metavar="[URL]...")
@CLUSTER_OPTION
@guarded_command
def doctor(stores: tuple[str, ...], cluster: str | None) -> dict[str, Any]:
    """Show versions, memory and kernels; check stores.

    Whether stores at URL and a cluster answer is checked, too.
    """
    from .doctor import examine, problems

    state, terminal = examine(stores, cluster), command_terminal()
    for section, values in state.items():
        if values:
            terminal.values(section, values)
    lines = problems(state)
    if lines:
        answer(state)
        raise RunError("; ".join(lines))
    return state


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@guarded_command
def completion(shell: str) -> None:
    """Print the completion script of a shell.

    It completes commands, keys and names: bags completion bash.
    """
    click.echo(script(shell))


COMMANDS = (
    config,
    doctor,
    completion,
    warm_up_kernels,
    submit_job,
    runs,
    follow_run,
    cancel,
    drive,
    serve,
    models,
)
