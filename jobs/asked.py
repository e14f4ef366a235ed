"""What the running command was asked to print: tables, JSON or tabs; details, or nothing."""

from __future__ import annotations

from typing import Any

import click

OUTPUT_FORMAT = f"{__name__}.format"  # keys in a command's context: what --format is,
VERBOSE = f"{__name__}.verbose"  # whether details are shown, or nothing at all
QUIET = f"{__name__}.quiet"
OUTPUT_FORMATS = ("table", "json", "tsv")


def asked(key: str, default: Any = None) -> Any:  # noqa: ANN401 - of any option
    """Return what the running command keeps under a key; the default outside of a command."""
    context = click.get_current_context(silent=True)
    return default if context is None else context.meta.get(key, default)


def wants_json() -> bool:
    """Return whether the running command was given ``--json``: it then prints no tables."""
    return bool(asked(OUTPUT_FORMAT) == "json")
