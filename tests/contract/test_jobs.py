"""Every key of every job's config refuses what it can not use: one line that names it.

What the config accepts goes on to the job itself, which works or ends in one line too.
"""

from __future__ import annotations

import pytest
from pydantic import BaseModel

from bagbasis.errors import MOST_CHARACTERS, ConfigError
from bagbasis.jobs.cli import run_job
from bagbasis.jobs.config import load_config
from bagbasis.jobs.shell import JOBS, import_job
from tests.contract.test_public_callables import guarded
from tests.contract.world import World

JUNK = (
    "null", "true", "no such thing", "'1'", '"a\\0b"', "1.5", ".nan", "-1", "1000000000",
    "9223372036854775808", "1e308", "[]", "{}", "[1, a]", "x" * 5000,
)  # fmt: skip
# Accepted, and work for hours.
LONG = {("generate", "n_bags"): ("1000000000",), ("generate", "params.n_points"): ("1000000000",)}


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    return World(tmp_path_factory.mktemp("jobs"))


def valid(job: str, w: World) -> dict[str, str]:
    """Settings with which a job works; those that are run are quick."""
    model = {"model.random_features.n_features": "16", "model.embedding.n_per_dim": "3"}
    return {
        "generate": {"dataset": "gmm_components", "url": w.new(), "n_bags": "3"},
        "ingest": {
            "points": w.table, "url": w.new(), "id_column": "bag", "coordinates": "[u, v]",
        },
        "info": {"url": w.url},
        "verify": {"url": w.url},
        "remove": {"url": w.url, "ids": "[]"},
        "relabel": {"url": w.url, "target": "y", "labels": "{}"},
        "compact": {"url": w.url},
        "merge": {"stores": f"[{w.url}]", "url": w.new()},
        "fit": {"data_url": w.url, "model_url": w.new(), "target": "y", **model},
        "predict": {"data_url": w.url, "model_url": w.model_url, "output_url": w.new("")},
    }.get(job, {})  # fmt: skip


def keys_of(model: type[BaseModel], prefix: str = "") -> list[str]:
    """All keys of a config, dotted, those of its sections among them."""
    found = []
    for name, field in model.model_fields.items():
        inner = field.annotation
        found.append(prefix + name)
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            found += keys_of(inner, f"{prefix}{name}.")
    return found


@pytest.mark.parametrize("job", JOBS)
def test_values_that_no_key_wants(job, world, monkeypatch, capfd):
    """A ConfigError, or a job that works, or one that says in one line what is wrong."""
    monkeypatch.chdir(world.folder)
    config, wrong = import_job(job).Config, []
    for key in keys_of(config):
        for junk in JUNK:
            if junk in LONG.get((job, key), ()):
                continue
            settings = [f"{k}={v}" for k, v in valid(job, world).items() if k != key]
            settings.append(f"{key}={junk}")
            try:
                load_config(config, None, settings)
            except ConfigError as error:
                found = str(error)
            else:
                if not valid(job, world):
                    continue
                capfd.readouterr()
                with guarded():
                    run_job(job, None, tuple(settings))
                found = capfd.readouterr().err
            is_raw = "--debug shows where" in found
            if is_raw or len(found.splitlines()) > 1 or len(found) > MOST_CHARACTERS + 10:
                wrong.append(f"{key}={junk[:30]}: {found[:300]}")
    assert not wrong, "\n" + "\n".join(wrong)
