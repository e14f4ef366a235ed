"""What other processes do with the objects of the moto server."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from bagbasis import BagStore, ModelError, WriterBusyError
from bagbasis.operations import Registry
from tests.data.store.processes import batch, running

N_ROUNDS = 2


def elsewhere(s3: dict[str, str], target: Callable[..., None], *args: Any) -> Any:
    """A process that reaches the server, and a pipe to it, for a ``with`` statement."""
    return running(_with_environment, s3, target, *args)


def _with_environment(
    pipe: Any, s3: dict[str, str], target: Callable[..., None], *args: Any
) -> None:
    os.environ.update(s3)
    target(pipe, *args)


def append_rounds(pipe: Any, url: str, first: int) -> None:
    """Append batches, the others' in between, each tried until nobody else is writing."""
    store = BagStore.open(url)
    pipe.send("ready")
    pipe.recv()
    for i in range(first, first + N_ROUNDS):
        bags, targets, ids, _ = batch(i)
        while True:
            try:
                store.append(bags, targets, ids=ids)
                break
            except WriterBusyError:
                continue
    pipe.send("appended")


def promote_rounds(pipe: Any, url: str, names: list[str]) -> None:
    """Promote both models in turn, each until nobody else is promoting; says how often."""
    registry = Registry(url)
    pipe.send("ready")
    pipe.recv()
    n_changes = 0
    for name in names * N_ROUNDS:
        while True:
            try:
                registry.promote(name)
                n_changes += 1
                break
            except ModelError as error:
                if "another promotion" not in str(error):
                    raise
    pipe.send(n_changes)
