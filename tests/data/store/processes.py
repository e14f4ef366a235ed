"""What the tests of the store's survival run in processes of their own."""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
from collections.abc import Callable
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from bagbasis import BagStore, StoreError
from tests.oracles.ragged import StoreModel, random_bags, random_responses

BATCH = 5

context = multiprocessing.get_context("forkserver")


@contextmanager
def running(target: Callable[..., None], *args: object):
    """Run a process with one end of a pipe as its first argument; yields it and the other end."""
    here, there = context.Pipe()
    process = context.Process(target=target, args=(there, *args), daemon=True)
    process.start()
    there.close()
    try:
        yield process, here
    finally:
        process.kill()
        process.join()


def loaded(target: Callable[..., Any], *args: object) -> Any:
    """Return what ``target(*args)`` does in a process of its own that loads all kernels.

    The first of two compiles those that are missing: a process that has compiled one itself, as
    the tests' may have, may round otherwise with it.
    """
    for _ in range(2):
        with running(_send, target, *args) as (_, pipe):
            assert pipe.poll(120)
            result = pipe.recv()
    return result


def _send(pipe: Any, target: Callable[..., Any], *args: object) -> None:
    pipe.send(target(*args))


def batch(i: int) -> tuple[list[Any], ...]:
    """Bags, targets, ids and responses of the i-th append, the same in every process."""
    rng = np.random.default_rng(i)
    bags = random_bags(rng, rng.integers(1, 40, BATCH).tolist(), 2, np.float32)
    responses = random_responses(rng, BATCH, 3, np.float32)
    return bags, [[float(i)]] * BATCH, list(range(BATCH * i, BATCH * (i + 1))), responses


def append_batch(store: BagStore) -> None:
    """Append the next batch, with its responses if the store holds any."""
    bags, targets, ids, responses = batch(store.n_bags // BATCH)
    store.append(
        bags, targets, ids=ids, responses=None if store.response_dims is None else responses
    )


def model_of(n_bags: int) -> StoreModel:
    """Return what a store of whole batches holds; fails on anything else."""
    assert n_bags % BATCH == 0
    model = StoreModel()
    for i in range(n_bags // BATCH):
        model = model.extended(*batch(i))
    return model


def check_two_appends(store: BagStore, n: int, *writers: Any) -> None:
    """Let two writers of ``n`` batches begin at once; each batch is there, whole and once."""
    with writers[0] as (_, item), writers[1] as (_, two):
        for pipe in (item, two):
            assert pipe.recv() == "ready"
        for pipe in (item, two):
            pipe.send("go")
        for pipe in (item, two):
            assert pipe.recv() == "appended"
    store.refresh().verify()
    ids = store.ids().tolist()
    assert sorted(ids) == list(range(2 * n * BATCH))
    for i in range(2 * n):
        at = ids.index(BATCH * i)
        assert ids[at : at + BATCH] == list(range(BATCH * i, BATCH * (i + 1)))
        for actual, value in zip(store.read(at, at + BATCH), batch(i)[0], strict=True):
            np.testing.assert_array_equal(actual, value)


def append_for_ever(pipe: Connection, url: str) -> None:
    """Append batch after batch until the process is killed."""
    store = BagStore.open(url)
    pipe.send("ready")
    while True:
        append_batch(store)


def hold(pipe: Connection, url: str) -> None:
    """Write into an open session and keep it open."""
    store = BagStore.open(url)
    with store.appending() as session:
        session.write(store.read(0, BATCH), ids=range(1000, 1000 + BATCH))
        pipe.send("holding")
        pipe.recv()


def refusals(actions: dict[str, Callable[[], Any]]) -> dict[str, str]:
    """Return the StoreError of each action, or what happened instead."""
    messages = {}
    for name, action in actions.items():
        try:
            action()
            messages[name] = "nothing was refused"
        except StoreError as error:
            messages[name] = str(error)
        except BaseException as error:
            messages[name] = f"another error: {error!r}"
    return messages


def fill_the_disk(pipe: Connection, url: str, limits: list[int]) -> None:
    """Append and create while no file may grow beyond some bytes."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    store = BagStore.open(url)
    messages = {}
    for limit in limits:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        messages |= refusals({f"append {limit}": lambda: append_batch(store)})
    messages |= refusals({"create": lambda: BagStore.create(f"{url}-other", 2)})
    pipe.send(messages)


def write_without_permission(pipe: Connection, url: str) -> None:
    """Read, append and create as a user who may only read."""
    # that user may not be able to import: numpy imports it when it is first asked for
    np.random.default_rng(0)
    store = BagStore.open(url)
    store.verify()
    if os.getuid() == 0:
        os.setuid(65534)
    pipe.send(
        refusals(
            {
                "append": lambda: append_batch(BagStore.open(url)),
                "create": lambda: BagStore.create(f"{url}-other", 2),
                "replace": lambda: BagStore.create(url, 2, overwrite=True),
            }
        )
        | {"n_bags": BagStore.open(url).n_bags, "read": len(BagStore.open(url).read())}
    )
