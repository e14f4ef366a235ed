"""The answer of a command: tables and lines for people, or one JSON object with ``--json``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from .terminal import Terminal

JSON = f"{__name__}.json"  # key in a command's context: whether --json was given


def take_json(command: click.Command) -> None:
    """Give the option ``--json`` to a command, or to all commands of a group; see `answer`."""
    if isinstance(command, click.Group):
        for one in command.commands.values():
            take_json(one)
    elif not command.hidden:
        text = "Print one JSON object on stdout in place of tables."
        option = click.Option(
            ["--json"], is_flag=True, expose_value=False, callback=_keep_json, help=text
        )
        command.params.append(option)


def _keep_json(context: click.Context, _: click.Parameter, value: bool) -> None:
    context.meta[JSON] = value


def wants_json() -> bool:
    """Return whether the running command was given ``--json``: it then prints no tables."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(JSON))


def answer(found: Mapping[str, Any]) -> None:
    """Print the result of a command as JSON, if ``--json`` was given."""
    if wants_json():
        from .files import plain

        click.echo(json.dumps(plain(found), indent=2, allow_nan=False))


def say(text: str) -> None:
    """Print a line on stdout, unless JSON was asked for."""
    if not wants_json():
        click.echo(text)


def command_terminal() -> Terminal:
    """Return the terminal of the running command; with ``--json`` it shows only progress."""
    from rich.console import Console

    from .terminal import Terminal

    return Terminal(Console(quiet=True) if wants_json() else None)
