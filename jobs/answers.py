"""The answer of a command: tables and lines for people, or one JSON object with ``--json``."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click

from .asked import OUTPUT_FORMAT, OUTPUT_FORMATS, QUIET, VERBOSE, asked, wants_json

if TYPE_CHECKING:
    from .terminal import Terminal


def take_output_options(command: click.Command) -> None:
    """Give the options of the output to a command, or to all of a group; see `answer`."""
    if isinstance(command, click.Group):
        for subcommand in command.commands.values():
            take_output_options(subcommand)
    elif not command.hidden:
        command.params += [
            click.Option(
                ["--format", "output_format"],
                type=click.Choice(OUTPUT_FORMATS),
                default="table",
                expose_value=False,
                callback=_keep_format,
                help="Print tables, one JSON object, or tables with tabs between cells.",
            ),
            _flag(["--json"], _keep_json, "Print one JSON object on stdout, as --format json."),
            _flag(["-v", "--verbose"], _keep(VERBOSE), "Show details."),
            _flag(
                ["-q", "--quiet"],
                _keep(QUIET),
                "Show neither results nor progress; errors alone.",
            ),
        ]


OptionCallback = Callable[[click.Context, click.Parameter, Any], None]


def _flag(names: list[str], callback: OptionCallback, text: str) -> click.Option:
    return click.Option(names, is_flag=True, expose_value=False, callback=callback, help=text)


def _keep(key: str) -> OptionCallback:
    """Return what keeps the value of an option under a key of the command's context."""
    return lambda context, _, value: context.meta.update({key: value})


def _keep_format(context: click.Context, _: click.Parameter, value: str) -> None:
    if context.meta.get(OUTPUT_FORMAT) != "json":
        context.meta[OUTPUT_FORMAT] = value


def _keep_json(context: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        context.meta[OUTPUT_FORMAT] = "json"


def answer(result: Mapping[str, Any]) -> None:
    """Print the result of a command as JSON, if ``--json`` was given."""
    if wants_json():
        from .files import plain

        click.echo(json.dumps(plain(result), indent=2, allow_nan=False))


def print_line(text: str) -> None:
    """Print a line on stdout, unless JSON was asked for, or nothing at all."""
    if not wants_json() and not asked(QUIET):
        click.echo(text)


def command_terminal() -> Terminal:
    """Return the terminal of the running command; with ``--json`` it shows only progress."""
    from rich.console import Console

    from .terminal import Terminal

    quiet = bool(asked(QUIET))
    out = Console(quiet=True) if wants_json() or quiet else None
    err = Console(stderr=True, quiet=True) if quiet else None
    verbose, tsv = bool(asked(VERBOSE)), asked(OUTPUT_FORMAT) == "tsv"
    return Terminal(out, err, verbose=verbose, tsv=tsv)
