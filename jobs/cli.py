"""The command ``bags``: one subcommand per job.

Jobs and the library are imported only when a job runs, so that ``bags --help`` answers at once.
"""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from bagbasis.core.systems import check_addresses, check_threads

from .answers import answer, command_terminal, take_json
from .interrupts import prompt_interrupts
from .job import GROUPS, JOBS, headings
from .other_commands import CLUSTER_OPTION, COMMANDS, SET_OPTION
from .shell import (
    FAILED,
    INTERRUPTED,
    NO_OUTPUT,
    WRONG_CONFIG,
    complain,
    give_up,
    guarded,
    import_job,
    no_output,
    packaged_config,
)

YAML = (".yaml", ".yml")
DEBUG = "Show tracebacks and the library's log."


class JobCommand(click.Command):
    """A job's command; its help ends with the keys of its config and the job's exit codes."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the keys of the job's config, and its exit codes."""
        from bagbasis.core.config_errors import key_sections

        assert self.name is not None
        job = import_job(self.name)
        for title, rows in key_sections(job.Config).items():
            with formatter.section(title or "Keys (in the YAML file, or with --set)"):
                formatter.write_dl(rows)
        if hasattr(job, "EXIT_CODES"):
            with formatter.section("Exit codes"):
                formatter.write_dl([(str(code), text) for code, text in job.EXIT_CODES.items()])


class Group(click.Group):
    """Turns any error on the command line into one line and an exit code."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands under their headings."""
        width = max(len(name) for name in self.commands)
        limit = formatter.width - width - 6  # what Click leaves for one line beside the name
        for heading, names in headings().items():
            with formatter.section(heading):
                rows = [(f"{n:{width}}", self.commands[n].get_short_help_str(limit)) for n in names]
                formatter.write_dl(rows)

    def main(self, args: Any = None, *more: Any, **options: Any) -> Any:
        """Run the command and end the process with its exit code."""
        try:
            code = super().main(args, *more, **{**options, "standalone_mode": False})
        except click.exceptions.NoArgsIsHelpError as error:
            click.echo(error.format_message())
            sys.exit(WRONG_CONFIG)
        except click.ClickException as error:
            complain(error.format_message())
            sys.exit(error.exit_code)
        except click.Abort:
            complain("interrupted")
            sys.exit(INTERRUPTED)
        except OSError as error:  # of what Click prints itself, such as --help
            if not no_output(error):
                raise
            complain(NO_OUTPUT.format(error.strerror))
            sys.exit(FAILED)
        sys.exit(code if isinstance(code, int) else 0)


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="bagbasis", prog_name="bags")
def cli() -> None:
    """Learning on bags (sample sets): from tables to predictions, one job at a time.

    A job takes its settings from a YAML file (examples are in configs/) and from --set.
    """


def main() -> None:
    """Run the console script; processes it starts import nothing of the folder it runs in."""
    for name in ("rich", "jinja2"):  # Click comes with Dask
        if find_spec(name) is None:
            complain(f"needs pip install 'bagbasis[cli]' (there is no {name})")
            sys.exit(WRONG_CONFIG)
    os.environ["PYTHONSAFEPATH"] = "1"
    os.environ["MPLBACKEND"] = "agg"  # pictures are files, whatever screen there is
    cli()


def run_job(
    name: str,
    what: str | None = None,
    overrides: tuple[str, ...] = (),
    cluster: str | None = None,
    scale: str | None = None,
    debug: bool = False,
) -> int:
    """Run one job and return its exit code.

    0 if it succeeded, 1 if it failed, 2 for a wrong config, 4 if another process does the same, 130
    if it was interrupted, or a code of the job's own.
    """

    def run() -> int:
        with prompt_interrupts(give_up):
            return _run(name, what, overrides, {"cluster": cluster, "scale": scale})

    return guarded(name, run, debug)


def _run(
    name: str, what: str | None, overrides: tuple[str, ...], options: dict[str, str | None]
) -> int:
    # before a job or its config imports numpy, whose libraries die of too few addresses
    if not JOBS[name].tends_store:
        check_addresses()
    job = import_job(name)
    from .configs import load_config

    path, given = _positional(name, what)
    if what is None and JOBS[name].self_contained:
        path = packaged_config(name)
    given |= {key: value for key, value in options.items() if value is not None}
    config = load_config(job.Config, path, overrides, given)
    check_threads()
    from .files import run_and_report, with_config

    report = run_and_report(job, name, config, command_terminal())
    answer(with_config(name, config, report))
    return job.exit_code(report) if hasattr(job, "exit_code") else 0


def _positional(name: str, what: str | None) -> tuple[str | Path | None, dict[str, str]]:
    """Return the config's path and the values that the positional argument stands for."""
    if what is None or what.lower().endswith(YAML) or not JOBS[name].shortcut:
        return what, {}
    return None, {JOBS[name].shortcut: what}


def _job_command(name: str) -> click.Command:
    job = JOBS[name]
    metavar = f"[CONFIG.yaml|{job.shortcut.upper()}]" if job.shortcut else "[CONFIG.yaml]"

    def callback(
        what: str | None,
        overrides: tuple[str, ...],
        debug: bool,
        cluster: str | None = None,
        scale: str | None = None,
    ) -> None:
        click.get_current_context().exit(run_job(name, what, overrides, cluster, scale, debug))

    callback = click.option("--debug", is_flag=True, help=DEBUG)(callback)
    if job.scaled:
        callback = click.option("--scale", metavar="small|paper", help="How large.")(callback)
    if job.cluster:
        callback = CLUSTER_OPTION(callback)
    callback = click.argument("what", required=False, metavar=metavar)(SET_OPTION(callback))
    return click.command(name, cls=JobCommand, help=job.help)(callback)


@cli.group("test")
def test_group() -> None:
    """Test hypotheses on bags."""


@cli.group("drift")
def drift_group() -> None:
    """Keep a reference, and test whether new data have drifted from it."""


for _command in COMMANDS:
    cli.add_command(_command)
_GROUPS = dict(zip(GROUPS, (test_group, drift_group), strict=True))
for _name in JOBS:
    _first, _, _rest = _name.partition("-")
    if _rest and _first in _GROUPS:
        _GROUPS[_first].add_command(_job_command(_name), _rest)
    else:
        cli.add_command(_job_command(_name))
take_json(cli)
