"""What a command answers: tables and lines for people, or one JSON object with ``--json``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from .terminal import Terminal

JSON = f"{__name__}.json"  # in the context of a command: whether --json was given


def take_json(command: click.Command) -> None:
    """Give a command, or all those of a group, the option ``--json``; see `answer`."""
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
    """Whether the command that runs was given ``--json``: its tables and lines are left out."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(JSON))


def answer(found: Mapping[str, Any]) -> None:
    """Print what a command has found or done as JSON, where ``--json`` asks for it."""
    if wants_json():
        from .files import plain

        click.echo(json.dumps(plain(found), indent=2, allow_nan=False))


def say(text: str) -> None:
    """Print a line on stdout, unless JSON is asked for."""
    if not wants_json():
        click.echo(text)


def command_terminal() -> Terminal:
    """Return the terminal of the command that runs; with ``--json`` it shows progress alone."""
    from rich.console import Console

    from .terminal import Terminal

    return Terminal(Console(quiet=True) if wants_json() else None)
