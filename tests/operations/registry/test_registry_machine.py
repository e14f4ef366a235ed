"""A registry driven at random, with kills and damage, against a plain model of it."""

from __future__ import annotations

import shutil
import tempfile
import uuid
from functools import cache
from pathlib import Path
from unittest.mock import patch

import fsspec
import numpy as np
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from hypothesis import HealthCheck, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from bagbasis import ModelError
from bagbasis.data.storage import folders
from bagbasis.operations import Registry
from bagbasis.operations.registry.pointer import Pointer
from tests.models.predicting import BAGS, Y, regressor

WHICH = st.integers(0, 2)


class Killed(BaseException):
    """The process is gone."""


@cache
def model(i):
    return regressor(alpha=0.1 * (i + 1)).fit(BAGS, Y)


class RegistryMachine(RuleBasedStateMachine):
    """Rules that all places have in common."""

    def place(self) -> str:
        raise NotImplementedError

    def kill_at_write(self, n: int):
        """A context in which the n-th write of a model to its place finds the process killed."""
        raise NotImplementedError

    @initialize()
    def start(self):
        self.url = self.place()
        self.names: dict[int, str] = {}
        self.stack: list[int] = []
        self.n_changes = 0

    @property
    def registry(self) -> Registry:
        return Registry(self.url)

    def chunks(self, i) -> list[str]:
        """What is there of the model's coefficients; a damaged model has lost them."""
        fs, root = fsspec.core.url_to_fs(self.registry.model_url(self.names[i]))
        return [path for path in fs.find(f"{root}/coef") if "/c/" in path]

    def can_be_champion(self, i) -> bool:
        return i in self.names and bool(self.chunks(i))

    @rule(i=WHICH)
    def register(self, i):
        name = self.registry.register(model(i), report={"i": i})
        assert self.names.setdefault(i, name) == name

    @rule(i=WHICH, n=st.integers(0, 12))
    def register_and_die(self, i, n):
        with self.kill_at_write(n):
            try:
                name = self.registry.register(model(i), report={"i": i})
            except Killed:
                return
        assert self.names.setdefault(i, name) == name

    @rule(i=WHICH)
    def promote(self, i):
        if not self.can_be_champion(i):
            with pytest.raises(ModelError, match=r"no model|damaged model"):
                self.registry.promote(self.names.get(i, "0" * 16))
            return
        self.registry.promote(self.names[i])
        if self.stack[-1:] != [i]:
            self.stack.append(i)
            self.n_changes += 1

    @rule(i=WHICH)
    def promote_and_die(self, i):
        """Before the pointer is written, the champion is the old one."""
        if not self.can_be_champion(i):
            return
        with patch.object(Pointer, "to_bytes", side_effect=Killed):
            try:
                self.registry.promote(self.names[i])
            except Killed:
                assert self.stack[-1:] != [i]

    @rule()
    def rollback(self):
        if len(self.stack) < 2 or not self.can_be_champion(self.stack[-2]):
            with pytest.raises(ModelError, match=r"no champion before|damaged model"):
                self.registry.rollback()
            return
        self.stack.pop()
        self.n_changes += 1
        assert self.registry.rollback() == self.names[self.stack[-1]]

    @rule(i=WHICH)
    def damage(self, i):
        if i in self.names and i not in self.stack[-1:]:
            fs, _ = fsspec.core.url_to_fs(self.url)
            for path in self.chunks(i):
                fs.rm_file(path)

    @invariant()
    def it_holds_what_was_registered(self):
        registry = self.registry
        champion = self.stack[-1] if self.stack else None
        assert registry.current() == (None if champion is None else self.names[champion])
        assert len(registry.history()) == self.n_changes
        records = {record.name: record for record in registry.list()}
        assert set(records) == set(self.names.values())
        for i, name in self.names.items():
            assert records[name].report == {"i": i}
            assert records[name].current == (i == champion)
            assert records[name].damage is None
        if champion is not None:
            np.testing.assert_array_equal(registry.load_current().coef_, model(champion).coef_)


class LocalMachine(RegistryMachine):
    def place(self):
        self.folder = tempfile.mkdtemp()
        return f"{self.folder}/registry"

    def kill_at_write(self, n):
        """Files are synced one after the other before the model appears."""
        sync, remaining = folders.fsync, [n]

        def sync_or_die(path):
            if "registry/models/.staged." in str(path):
                remaining[0] -= 1
                if remaining[0] < 0:
                    raise Killed
            sync(path)

        return patch.object(folders, "fsync", sync_or_die)

    def teardown(self):
        if hasattr(self, "folder"):
            models = Path(self.folder, "registry", "models")
            if models.exists():
                assert {path.name for path in models.iterdir()} == {
                    f"{name}.zarr" for name in self.names.values()
                }
            shutil.rmtree(self.folder)


class MemoryMachine(RegistryMachine):
    def place(self):
        return f"memory://{uuid.uuid4().hex}/registry"

    def kill_at_write(self, n):
        """Objects are written one after the other, the attributes last."""
        commit, remaining = MemoryFileSystem.put_file, [n]

        def put_or_die(fs, *args, **kwargs):
            remaining[0] -= 1
            if remaining[0] < 0:
                raise Killed
            commit(fs, *args, **kwargs)

        return patch.object(MemoryFileSystem, "put_file", put_or_die)

    def teardown(self):
        fs = fsspec.filesystem("memory")
        if hasattr(self, "url") and fs.exists(self.url):
            fs.rm(self.url, recursive=True)


def machine_settings(max_examples: int) -> settings:
    return settings(
        max_examples=max_examples,
        stateful_step_count=12,
        suppress_health_check=list(HealthCheck),
    )


TestLocalRegistry = pytest.mark.long(LocalMachine.TestCase)
TestLocalRegistry.__doc__ = "Whatever happens to a local registry, its champion is whole."
TestLocalRegistry.settings = machine_settings(10)
TestMemoryRegistry = MemoryMachine.TestCase
TestMemoryRegistry.__doc__ = "Whatever happens to a registry of objects, its champion is whole."
TestMemoryRegistry.settings = machine_settings(8)
