"""The command ``bags``: one subcommand per job.

Jobs and the library are imported only when a job runs, so that ``bags --help`` answers at once.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import click

from bagbasis.core.systems import check_addresses, check_threads

from .answers import answer, command_terminal, take_output_options
from .completions import complete_words
from .interrupts import prompt_interrupts
from .job import COMMAND_GROUPS, JOBS, called, headings
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

YAML = (".yaml", ".yml", ".json")  # JSON is YAML, too
HELP_ALL = "bagbasis.help_all"
_Rows = list[tuple[str, str]]
DEBUG = "Show tracebacks and the library's log."


class JobCommand(click.Command):
    """A job's command; its help ends with the keys of its config and the job's exit codes."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words; a key that is written as an option, --key, is told how to be set."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            if error.possibilities:
                raise
            key = error.option_name.lstrip("-").replace("-", "_")
            advice = f"a key of the config is set by --set {key}=VALUE"
            raise click.UsageError(f"{error.message.rstrip('.')}; {advice}", ctx) from None

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the keys of the job's config, and its exit codes.

        ``--help`` has a line or two for each key; ``--help-all`` has those of every component, too,
        and what each accepts.
        """
        from bagbasis.core.config_errors import key_sections

        assert self.name is not None
        job = import_job(self.name)
        sections = key_sections(job.Config)
        is_whole = bool(ctx.meta.get(HELP_ALL))
        shown = sections if is_whole else short_sections(sections)
        for title, rows in shown.items():
            with formatter.section(title or "Keys (in the YAML file, or with --set)"):
                formatter.write_dl([(key, without_marks(text)) for key, text in rows])
        if not is_whole:
            words = f"{ctx.command_path} --help-all"
            more = ", and the keys of every component" if len(shown) < len(sections) else ""
            formatter.write_paragraph()
            formatter.write_text(f"{words} shows what each key accepts and its default{more}.")
        if hasattr(job, "EXIT_CODES"):
            with formatter.section("Exit codes"):
                formatter.write_dl([(str(code), text) for code, text in job.EXIT_CODES.items()])


def short_sections(sections: Mapping[str, _Rows]) -> dict[str, _Rows]:
    """Return the keys of a job without those of components, and without what each accepts."""
    shown: dict[str, _Rows] = {}
    places = set()
    for title, rows in sections.items():
        place, _, kind = title.partition(" with ")
        if not kind.startswith("name") and place not in places:  # the first kind is the default
            places.add(place)
            shown[title] = [
                (key, f"required: {words}" if accepted.endswith("; required)") else words)
                for key, text in rows
                for words, _, accepted in [text.rpartition(" (")]
            ]
    return shown


def without_marks(text: str) -> str:
    """Return a text of a docstring without the marks of code."""
    return text.replace("`", "")


def _show_all(context: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        context.meta[HELP_ALL] = True
        click.echo(context.get_help(), color=context.color)
        context.exit()


def _check_text(word: str) -> None:
    """End the process if an argument has bytes that are not text: they could not be told of."""
    try:
        word.encode()
    except UnicodeEncodeError as error:
        n_bytes = len(os.fsencode(word[: error.start]))
        complain(f"argument {word!a}: byte {n_bytes} is not UTF-8; give names and texts in UTF-8")
        sys.exit(WRONG_CONFIG)


class Group(click.Group):
    """Turns any error on the command line into one line and an exit code."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands under their headings."""
        width = max(len(name) for name in self.commands)
        limit = formatter.width - width - 6  # what Click leaves for one line next to the name
        for heading, names in headings().items():
            with formatter.section(heading):
                rows = [(f"{n:{width}}", self.commands[n].get_short_help_str(limit)) for n in names]
                formatter.write_dl(rows)

    def main(self, args: Any = None, *more: Any, **options: Any) -> Any:
        """Run the command and end the process with its exit code."""
        words = [*(sys.argv[1:] if args is None else args)]
        for word in words:
            _check_text(word)
        if words[:1] == ["help"]:  # "bags help fit" is "bags fit --help"
            args = [*words[1:], "--help"]
        try:
            code = super().main(args, *more, **{**options, "standalone_mode": False})
        except click.exceptions.NoArgsIsHelpError as error:
            click.echo(error.format_message())
            sys.exit(WRONG_CONFIG)
        except click.ClickException as error:
            complain(error.format_message(), kind="UsageError", as_json=_asks_for_json(args))
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


def _asks_for_json(args: Sequence[str] | None) -> bool:
    """Return whether a command line that could not be read asks for JSON."""
    words = sys.argv[1:] if args is None else [*args]
    is_one_word = not {"--json", "--format=json"}.isdisjoint(words)
    return is_one_word or ("--format", "json") in pairwise(words)


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
    more: Sequence[str] = (),
    output: str | None = None,
) -> int:
    """Run one job and return its exit code.

    0 if it succeeded, 1 if it failed, 2 for a wrong config, 4 if another process does the same, 130
    if it was interrupted, or a code of the job's own.
    """

    def run() -> int:
        with prompt_interrupts(give_up):
            values = dict(zip(JOBS[name].more, more, strict=False))
            values |= {} if output is None else {JOBS[name].output: output}
            return _run(name, what, overrides, {"cluster": cluster, "scale": scale, **values})

    return guarded(called(name), run, debug)


def _run(
    name: str, what: str | None, overrides: tuple[str, ...], options: dict[str, str | None]
) -> int:
    # before a job or its config imports libraries, which die of too few addresses or threads
    if not JOBS[name].tends_store:
        check_addresses()
    check_threads()
    job = import_job(name)
    from .configs.config import load_config

    path, values = _positional(name, what)
    if what is None and JOBS[name].self_contained:
        path = packaged_config(name)
    values |= {key: value for key, value in options.items() if value is not None}
    config = load_config(job.Config, path, overrides, values, called(name))
    from .files import run_and_report, with_config

    report = run_and_report(job, name, config, command_terminal())
    answer(with_config(name, config, report))
    return job.exit_code(report) if hasattr(job, "exit_code") else 0


def _positional(name: str, what: str | None) -> tuple[str | Path | None, dict[str, str]]:
    """Return the config's path and the values that the positional argument stands for."""
    if what is None or what.lower().endswith(YAML) or not JOBS[name].shortcut:
        return what, {}
    return None, {JOBS[name].shortcut: what}


_KEY_AND_VALUE = re.compile(r"[a-z_]+(\.[a-z_]+)*=")


def _job_command(name: str) -> click.Command:
    job = JOBS[name]
    words = [name.removesuffix("_url").upper() for name in (job.shortcut, *job.more) if name]
    metavar = f"[CONFIG.yaml|{' '.join(words)}]" if words else "[CONFIG.yaml]"

    def callback(
        words: tuple[str, ...],
        overrides: tuple[str, ...],
        debug: bool,
        cluster: str | None = None,
        scale: str | None = None,
        output: str | None = None,
    ) -> None:
        context = click.get_current_context()
        for word in words:
            if _KEY_AND_VALUE.match(word) and not Path(word).exists():
                raise click.UsageError(f"{word!r}: a key is set by --set {word}", context)
        what = words[0] if words else None
        more = words[1:]
        if len(more) > len(job.more):
            extra = more[len(job.more)]
            raise click.UsageError(f"too many arguments: {extra!r}; expected {metavar}", context)
        context.exit(run_job(name, what, overrides, cluster, scale, debug, more, output))

    callback = click.option("--debug", is_flag=True, help=DEBUG)(callback)
    callback = click.option(
        "--help-all",
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_show_all,
        help="Show this message with all keys, and exit.",
    )(callback)
    if job.scaled:
        callback = click.option("--scale", metavar="small|paper", help="How large.")(callback)
    if job.cluster:
        callback = CLUSTER_OPTION(callback)
    if job.output:
        text = f"Where the result goes; the same as --set {job.output}=URL."
        callback = click.option("-o", "--output", metavar="OUT", help=text)(callback)
    place = click.argument(
        "words", nargs=-1, metavar=metavar, shell_complete=complete_words(name, job)
    )
    callback = place(SET_OPTION(callback))
    return click.command(name, cls=JobCommand, help=job.help)(callback)


@cli.group("test")
def test_group() -> None:
    """Test hypotheses on bags."""


@cli.group("drift")
def drift_group() -> None:
    """Test whether new data have drifted from a reference."""


for _command in COMMANDS:
    cli.add_command(_command)
_GROUPS = dict(zip(COMMAND_GROUPS, (test_group, drift_group), strict=True))
for _name in JOBS:
    _first, _, _rest = called(_name).partition(" ")
    (_GROUPS[_first] if _rest else cli).add_command(_job_command(_name), _rest or _name)
take_output_options(cli)
