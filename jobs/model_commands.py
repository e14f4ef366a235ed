"""``bags models list | promote | rollback``: the registry's models, and which is the champion."""

from __future__ import annotations

from typing import Any

import click

from .shell import exit_guarded

REGISTRY = click.argument("url", metavar="REGISTRY_URL")


@click.group()
def models() -> None:
    """The models of a registry, and which of them is the champion."""


@models.command("list")
@REGISTRY
def listed(url: str) -> None:
    """List the models at REGISTRY_URL, the oldest first; * is the champion."""

    def action() -> None:
        from .terminal import Terminal

        records = _registry(url).list()
        if not records:
            click.echo(f"{url}: no models")
            return
        columns = ["", "model", "registered", "estimator", "numbers"]
        Terminal().table("Models", columns, [_row(record) for record in records], whole=("model",))

    exit_guarded("models list", action)


@models.command()
@REGISTRY
@click.argument("name")
def promote(url: str, name: str) -> None:
    """Make the model NAME the champion; it is read and checked first."""

    def action() -> None:
        registry = _registry(url)
        before = registry.current()
        registry.promote(name)
        if before == name:
            click.echo(f"{name} is the champion already; nothing changed")
        else:
            click.echo(f"the champion is {name}, {_before(before)}")

    exit_guarded("models promote", action)


@models.command()
@REGISTRY
def rollback(url: str) -> None:
    """Make the champion before the current one champion again."""

    def action() -> None:
        registry = _registry(url)
        before = registry.current()
        name = registry.rollback()
        click.echo(f"the champion is {name} again, {_before(before)}")

    exit_guarded("models rollback", action)


def _registry(url: str) -> Any:
    from bagbasis.registry import Registry

    return Registry(url)


def _row(record: Any) -> list[str]:
    """Champion's mark, name, when, estimator, and the numbers of its fit and of its report."""
    numbers = {"bags": record.fit.get("n_bags_fitted"), **record.report}
    shown = [
        f"{name} {value:,}" if isinstance(value, int) else f"{name} {value:.4g}"
        for name, value in numbers.items()
        if isinstance(value, (int, float)) and not isinstance(value, bool)
    ]
    return [
        "*" if record.current else "",
        record.name,
        record.created[:16].replace("T", " "),
        record.estimator,
        ", ".join(shown) if record.damage is None else f"damaged: {record.damage}",
    ]


def _before(name: str | None) -> str:
    return "the first one" if name is None else f"in place of {name}"
