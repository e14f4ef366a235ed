"""Every key of every job's config refuses what it cannot use: one line that names it.

What the config accepts goes on to the job itself, which works or ends in one line too. Two jobs
stop at their config: `demo` and `experiment` make all that they work on themselves, which takes
seconds to minutes each time.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from matplotlib.figure import Figure
from pydantic import BaseModel

from bagbasis import ConfigError
from bagbasis.core.errors import MAX_CHARACTERS
from bagbasis.jobs.cli import run_job
from bagbasis.jobs.configs.config import JobConfig
from tests.contract.test_public_callables import REFUSAL_SECONDS, guarded
from tests.contract.values import WHICH, drawn_of
from tests.contract.world import World
from tests.jobs.running import JOBS, import_job, load_config

JUNK = (
    "null", "true", "no such thing", "'1'", '"a\\0b"', "1.5", ".nan", "-1", "1000000000",
    "9223372036854775808", "1e308", "[]", "{}", "[1, a]", "x" * 5000,
)  # fmt: skip
FOUR = ("[1, a]", "-1", "1e308", "no such thing")  # a wrong type, below, above, a wrong word
LIKE_FIT = ("tune", "retrain")  # what is below `model` goes on to the estimators of `fit`
# Accepted, and work for hours.
LONG = {("generate", "n_bags"): ("1000000000",), ("generate", "params.n_points"): ("1000000000",)}


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    return World(tmp_path_factory.mktemp("jobs"))


def valid(job: str, w: World) -> dict[str, str]:
    """Settings with which a job works; those that are run are quick."""
    model = {"model.random_features.n_features": "16", "model.embedding.n_per_dim": "3"}
    tested = {"data_url": w.url, "n_permutations": "9", "out_dir": w.new("")}
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
        "evaluate": {"data_url": w.url, "model_url": w.model_url, "out_dir": w.new("")},
        "tune": {
            "data_url": w.larger.url, "model_url": w.new(), "target": "y", "out_dir": w.new(""),
            "model.validation_fraction": "0.3", "search.embedding": "{n_per_dim: [3]}",
            "model.random_features.n_features": "16",
        },
        "retrain": {
            "data_url": w.url, "registry_url": w.new(""), "target": "y", "out_dir": w.new(""),
            "holdout": "0.3", **model,
        },
        "test-two-sample": {
            "a_url": w.url, "a_bags": "[0, 6]", "b_bags": "[6, 12]", "n_permutations": "9",
            "out_dir": w.new(""),
        },
        "test-independence": {**tested, "target": "y"},
        "test-fit": {**tested, "targets": "[y]", "means": "[[0.5]]", "covariances": "1.0"},
        "drift-fit": {"data_url": w.url, "detector_url": w.new(), "n_permutations": "9"},
        "predict": {"data_url": w.url, "model_url": w.model_url, "output_url": w.new("")},
    }.get(job, {})  # fmt: skip


def keys_of(model: type[BaseModel], prefix: str = "") -> list[str]:
    """All keys of a config, dotted, those of its sections among them."""
    values = []
    for name, field in model.model_fields.items():
        inner = field.annotation
        values.append(prefix + name)
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            values += keys_of(inner, f"{prefix}{name}.")
    return values


def load(config: type[JobConfig], settings: list[str]) -> JobConfig | str:
    """The config, or why it is refused."""
    try:
        return load_config(config, None, settings)
    except ConfigError as error:
        return str(error)


@pytest.mark.long
@WHICH
@pytest.mark.parametrize("job", JOBS)
def test_values_that_no_key_wants(job, which, world, monkeypatch, capfd):
    """A ConfigError, or a job that works, or one that says in one line what is wrong."""
    monkeypatch.chdir(world.folder)
    config, wrong, works = import_job(job).Config, [], valid(job, world)
    if works and which == "four":  # once in a run of both
        assert run_job(job, None, tuple(f"{k}={v}" for k, v in works.items())) == 0
    # a picture of each kind is drawn now; hundreds more would take most of the time
    monkeypatch.setattr(Figure, "savefig", lambda figure, path, **_: Path(path).touch())
    for key in keys_of(config):
        for junk in drawn_of(f"{job} {key}", which, JUNK, FOUR):
            if junk in LONG.get((job, key), ()):
                continue
            others = [f"{k}={v}" for k, v in valid(job, world).items() if k != key]
            settings = [*others, f"{key}={junk}"]
            result = load(config, settings)
            if not isinstance(result, str):
                is_default = result == load(config, others)
                if not works or is_default or (job in LIKE_FIT and key.startswith("model.")):
                    continue
                capfd.readouterr()
                with guarded() as seconds:
                    code = run_job(job, None, tuple(settings))
                result = capfd.readouterr().err
                if code and seconds() > REFUSAL_SECONDS:
                    result = f"refused after {seconds():.1f} CPU seconds\n{result}"
            is_raw = "--debug shows where" in result
            if is_raw or len(result.splitlines()) > 1 or len(result) > MAX_CHARACTERS + 10:
                wrong.append(f"{key}={junk[:30]}: {result[:300]}")
    assert not wrong, "\n" + "\n".join(wrong)
