"""A store driven at random through appends, killed appends and refusals, against a model.

A kill is an exception that no writer handles, thrown instead of one of the writes: what was
written before it stays, nothing comes after it, and the lock goes as it would with the process.
"""

from __future__ import annotations

import shutil
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import HealthCheck, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from bagbasis import Bags, BagStore, DataError
from bagbasis.data.storage.zarr_writer import WriterStore
from tests.copied import copied
from tests.oracles.ragged import StoreModel, random_bags, random_responses

BATCH = st.lists(st.integers(1, 40), min_size=1, max_size=5)
WRITES = 24  # more than a small append makes


class Killed(BaseException):
    """The process is gone."""


@contextmanager
def killed_after(n_writes: int) -> Iterator[list[str]]:
    """Every write after the first ``n_writes`` finds the process killed; yields those before."""
    original, written, remaining = WriterStore.set, [], [n_writes]

    async def set_or_die(store, key, value):
        if not remaining[0]:
            raise Killed
        remaining[0] -= 1
        await original(store, key, value)
        written.append(key)

    with patch.object(WriterStore, "set", set_or_die):
        yield written


class StoreMachine(RuleBasedStateMachine):
    """Rules that all places have in common."""

    def place(self) -> str:
        """Return a URL where nothing is."""
        raise NotImplementedError

    def litter(self) -> None:
        """Leave what a killed writer leaves lying about."""

    @initialize(
        chunk_points=st.sampled_from([1, 3]),
        dtype=st.sampled_from(["f4", "f8"]),
        response_dims=st.sampled_from([3, None]),
    )
    def create(self, chunk_points, dtype, response_dims):
        """Begin with an empty store."""
        self.rng = np.random.default_rng(0)
        self.url = self.place()
        self.store = BagStore.create(
            self.url,
            2,
            target_names=["y"],
            response_dims=response_dims,
            dtype=dtype,
            chunk_points=chunk_points,
        )
        self.model = StoreModel()

    def batch(self, sizes, kind):
        """Return what `append` takes of a batch, and the model with it."""
        bags = random_bags(self.rng, sizes, 2, self.store.dtype)
        targets = self.rng.choice([0.5, np.nan, -3.0], size=(len(sizes), 1)).tolist()
        if self.model.ids and isinstance(self.model.ids[0], str):
            kind = "str"
        elif self.model.ids and kind == "str":
            kind = "int"
        numbers = [i for i in self.model.ids if isinstance(i, int)]
        first = max(numbers, default=-1) + 1
        if kind == "default":
            ids = list(range(first, first + len(sizes)))
        elif kind == "int":
            free = sorted(set(range(-5, first + 10)) - set(numbers))
            ids = self.rng.permutation(free)[: len(sizes)].tolist()
        else:
            ids = [self.rng.bytes(8).hex() for _ in sizes]
        value = {"bags": bags, "targets": targets, "ids": None if kind == "default" else ids}
        responses = None
        if self.store.response_dims is not None and self.rng.random() < 0.8:
            responses = random_responses(self.rng, len(sizes), 3, self.store.dtype)
            value["responses"] = responses
        return value, self.model.extended(bags, targets, ids, responses)

    @rule(sizes=BATCH, kind=st.sampled_from(["default", "int", "str"]))
    def append(self, sizes, kind):
        """Append a batch."""
        arguments, grown = self.batch(sizes, kind)
        self.store.append(**arguments)
        self.model = grown

    @rule(
        sizes=BATCH,
        kind=st.sampled_from(["default", "int", "str"]),
        writes=st.integers(0, WRITES),
        then_open=st.booleans(),
    )
    def killed_append(self, sizes, kind, writes, then_open):
        """Append a batch in a process that dies after some writes: all of it or nothing."""
        arguments, grown = self.batch(sizes, kind)
        with killed_after(writes) as written:
            try:
                self.store.append(**arguments)
            except Killed:
                assert "zarr.json" not in written
            else:
                assert written[-1] == "zarr.json"
                self.model = grown
        self.litter()
        if then_open:
            self.store = BagStore.open(self.url)

    @precondition(lambda self: self.model.ids)
    @rule(
        which=st.sets(st.integers(0, 1000), min_size=1),
        writes=st.integers(0, WRITES),
        removes=st.booleans(),
    )
    def killed_change(self, which, writes, removes):
        """Change bags in a process that dies after some writes, or does not: all or none."""
        rows = sorted({i % len(self.model.ids) for i in which} - (self.model.removed))
        labels = dict(zip(rows, self.rng.random(len(rows)).tolist(), strict=True))
        with killed_after(writes) as written:
            try:
                if removes:
                    self.store.remove([self.model.ids[row] for row in rows])
                else:
                    self.store.relabel("y", {self.model.ids[i]: y for i, y in labels.items()})
            except Killed:
                assert "zarr.json" not in written
            else:
                changes = {"removed": rows} if removes else {"labels": labels}
                self.model = self.model.changed(**changes)

    @rule(
        sizes=BATCH,
        wrong=st.sampled_from(["nan", "dimension", "target", "id", "response", "count", "code"]),
    )
    def failed_append(self, sizes, wrong):
        """Write a good batch and a wrong one: nothing of either is committed."""
        good, _ = self.batch(sizes, "int")
        bad, _ = self.batch([1, 2], "int")
        if good["ids"] and isinstance(good["ids"][0], int):
            bad["ids"] = [max(good["ids"]) + 100, max(good["ids"]) + 101]
        if wrong == "nan":
            bad["bags"][1][1, 0] = np.nan
        elif wrong == "dimension":
            bad["bags"] = [np.zeros((1, 3))] * 2
        elif wrong == "target":
            bad["targets"] = [[np.inf], [0.0]]
        elif wrong == "id":
            bad["ids"] = [bad["ids"][0], bad["ids"][0]]
        elif wrong == "response":
            bad["responses"] = [None, [[0.0, np.nan, 0.0]]]
        elif wrong == "count":
            bad["responses"] = [None]
        error = RuntimeError if wrong == "code" else DataError
        arrays = bad.pop("bags")
        offsets = np.array([0, 1, sum(len(bag) for bag in arrays)])
        good["bags"] = Bags.from_list(good["bags"])

        def write_good_and_bad():
            with self.store.appending() as session:
                session.write(**good)
                if wrong == "code":
                    raise RuntimeError
                session.write(Bags.trusted(np.concatenate(arrays), offsets), **bad)

        with pytest.raises(error):
            write_good_and_bad()

    @precondition(lambda self: self.model.ids)
    @rule(which=st.integers(0, 1000))
    def append_an_id_that_is_there(self, which):
        """Append a duplicate: refused, whatever the order of the ids."""
        taken = self.model.ids[which % len(self.model.ids)]
        with pytest.raises(DataError, match="duplicate"):
            self.store.append([np.zeros((1, 2))], [0.0], ids=[taken])

    @rule()
    def reopen(self):
        """Forget what the store object has seen."""
        self.store = BagStore.open(self.url)

    @rule(data=st.data())
    def read_a_range(self, data):
        """Read some bags."""
        start = data.draw(st.integers(0, len(self.model.bags)))
        self.model.check(self.store, start, data.draw(st.integers(start, len(self.model.bags))))

    @rule()
    def verify(self):
        """Find no violation."""
        self.store.verify()

    @invariant()
    def counts_are_the_committed_ones(self):
        """Count the bags of the model, after every step."""
        assert self.store.n_bags == len(self.model.bags)

    def teardown(self):
        """Compare everything with the model at the end."""
        if hasattr(self, "url"):
            store = BagStore.open(self.url)
            store.verify()
            self.model.check(store)
            shutil.rmtree(self.folder)


class LocalMachine(StoreMachine):
    """A store in local files."""

    def place(self) -> str:
        """Return a URL in a new folder."""
        self.folder = Path(tempfile.mkdtemp())
        return str(self.folder / "s.zarr")

    def litter(self) -> None:
        """Leave a torn file."""
        (Path(self.url) / "points" / f"0.{uuid.uuid4().hex}.partial").write_bytes(b"torn")

    @rule()
    def append_and_look_for_litter(self):
        """Append: the writer removes what killed ones left."""
        self.append([1], "default")
        assert not list(Path(self.url).rglob("*.partial"))


class IcechunkMachine(StoreMachine):
    """A store kept by Icechunk."""

    def place(self) -> str:
        """Return a URL in a new folder."""
        self.folder = Path(tempfile.mkdtemp())
        return f"icechunk+file://{self.folder}/s"


def machine_settings(max_examples: int) -> settings:
    """Return settings of a machine, whose steps may be slow."""
    return settings(
        max_examples=max_examples,
        stateful_step_count=15,
        suppress_health_check=list(HealthCheck),
    )


TestLocalStore = pytest.mark.long(LocalMachine.TestCase)
TestLocalStore.__doc__ = "Whatever happens to a local store, it holds what was committed."
TestLocalStore.settings = machine_settings(10)
TestIcechunkStore = pytest.mark.long(IcechunkMachine.TestCase)
TestIcechunkStore.__doc__ = (
    "Whatever happens to a transactional store, it holds what was committed."
)
TestIcechunkStore.settings = machine_settings(4)


@copied
def empty(url, response_dims):
    BagStore.create(url, 2, target_names=["y"], response_dims=response_dims, chunk_points=1)


@pytest.mark.long
@pytest.mark.parametrize(
    ("first", "second", "response_dims"),
    [(["a", "b"], None, None), (None, ["a", "b"], 1)],
)
def test_a_first_append_killed_before_every_write(tmp_path, first, second, response_dims):
    """Wherever the first append dies, the store stays empty and takes ids of either kind next."""
    rng = np.random.default_rng(0)
    bags = random_bags(rng, [20, 3], 2, np.float32)
    model = StoreModel(bags, [[1.0], [2.0]], [0, 1] if second is None else second, [None] * 2)
    late = None if response_dims is None else [rng.random((20, 1)), None]
    for n_writes in range(WRITES):
        store = empty(tmp_path / f"{n_writes}.zarr", response_dims)
        with killed_after(n_writes) as written:
            try:
                arrays = random_bags(rng, [30, 7], 2, np.float32)
                store.append(arrays, [5, 6], ids=first, responses=late)
            except Killed:
                assert "zarr.json" not in written
            else:
                break
        fresh = BagStore.open(store.url)
        assert fresh.n_bags == 0
        fresh.verify()
        model.check(fresh.append(bags, [1.0, 2.0], ids=second))
        fresh.verify()
    assert written[-1] == "zarr.json"
    assert 9 <= n_writes == len(written)
