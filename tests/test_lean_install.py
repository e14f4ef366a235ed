"""What works in an environment of the core's packages alone, and what is said where more is needed.

The environment is a folder of links to the packages that the core, and some extras, require.
"""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import bagbasis

CORE = """
import importlib.util, pkgutil, sys
import bagbasis
import numpy as np
from distributed.security import Security
from bagbasis import BagStore, DoubleBasisClassifier, DoubleBasisRegressor, ProjectionEmbedding
from bagbasis import *
from bagbasis import cross_val_score, evaluate, load_model
from bagbasis.execution.clusters.connections import profile_of
from bagbasis.ingest import ingest_arrays
from bagbasis.operations import log_model
from bagbasis.models import write_predictions

rng = np.random.default_rng(0)
spread = rng.uniform(0.1, 0.4, 60)
bags = [np.clip(rng.normal(0.5, s, (20, 2)), 0, 1) for s in spread]
store = BagStore.create("bags.zarr", n_dims=2, target_names=["spread"])
store.append(bags, targets={"spread": spread})
model = DoubleBasisRegressor(ProjectionEmbedding(n_per_dim=4), alpha="gcv")
model.fit(store, target="spread", holdout=0.2).save("model.zarr")
loaded = load_model("model.zarr")
assert (loaded.predict(bags) == model.predict(bags)).all()
write_predictions(loaded, store, "predictions.zarr")
assert evaluate(loaded, store).values()["spread"]["r2"] > 0.5
groups = np.array(list("abcdef"), dtype=object).repeat(10)
assert len(cross_val_score(model, bags, spread, cv=3, groups=groups)) == 3
classes = np.where(spread > 0.25, "wide", "narrow")
classifier = DoubleBasisClassifier(ProjectionEmbedding(n_per_dim=4)).fit(bags, classes)
classifier.save("classifier.zarr")
assert (load_model("classifier.zarr").predict(bags) == classifier.predict(bags)).all()
ingest_arrays(bags, "ingested.zarr", targets={"spread": spread})
assert profile_of("local").cluster == "local" and Security.temporary()
rows, labels = rng.normal(size=(20, 2)), rng.normal(size=20)
stream = StreamingRidge(n_folds=2).partial_fit(rows, labels, groups=list("abcdefghij") * 2)
assert stream.predict(rows).shape == (20,)
# each public name is there, or says which extra it needs
for package in pkgutil.iter_modules(bagbasis.__path__, "bagbasis."):
    try:
        names = getattr(importlib.import_module(package.name), "__all__", ())
    except DataError as error:
        assert "needs pip install 'bagbasis[plots]'" in str(error)
        continue
    for name in names:
        try:
            getattr(sys.modules[package.name], name)
        except DataError as error:
            assert f"{name}: needs pip install 'bagbasis[" in str(error), error
absent = ("pandas", "pyarrow", "duckdb", "matplotlib", "rich", "PIL", "h5py")
assert not any(map(importlib.util.find_spec, absent))

for call, words in {
    lambda: __import__("bagbasis.ingest", fromlist=["ingest_frame"]): "ingest_frame: needs pip",
    lambda: write_predictions(loaded, store, "p", format="parquet"): "p in a table: needs pip",
    lambda: DoubleBasisRegressor("moments").fit(
        dict(enumerate(bags)), dict(enumerate(spread))
    ): (
        "DoubleBasisRegressor.fit: needs pip install"
    ),
    lambda: log_model(model): "log_model: needs pip install 'bagbasis[mlflow]'",
}.items():
    try:
        call()
    except ValueError as error:
        assert words in str(error) and ("log" in words or "'bagbasis[tables]'" in str(error))
    else:
        raise AssertionError(words)
"""

REFUSED = [  # extras that are there, a command, and what it says
    ((), "--help", "bags: needs pip install 'bagbasis[cli]' (there is no rich)"),
    (
        ("cli",),
        "fit --set data_url=bags.zarr --set model_url=new.zarr",
        "bags: fit: needs pip install 'bagbasis[plots]' (No module named 'matplotlib')",
    ),
]


def requirements(
    name: str, extras: frozenset[str], actual: set[tuple[str, frozenset[str]]]
) -> None:
    """Add what a distribution requires with some extras, and what that requires, and so on."""
    if (name, extras) in actual:
        return
    actual.add((name, extras))
    for item in map(Requirement, distribution(name).requires or ()):
        marker = item.marker
        if marker is None or any(marker.evaluate({"extra": e}) for e in extras or ("",)):
            requirements(item.name, frozenset(item.extras), actual)


@pytest.fixture
def environment(tmp_path, monkeypatch):
    """Make and take an environment with some of our extras: a function of their names."""

    def make(*extras: str) -> Path:
        result: set[tuple[str, frozenset[str]]] = set()
        requirements("bagbasis", frozenset(extras), result)
        for name in {name for name, _ in result}:
            files = distribution(name).files or []
            for top in {file.parts[0] for file in files} - {"..", "__pycache__"}:
                if not (tmp_path / top).exists():
                    (tmp_path / top).symlink_to(str(distribution(name).locate_file(top)))
        ours = str(Path(bagbasis.__file__).parents[1])  # in its place, for its compiled kernels
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join([ours, str(tmp_path)]))
        return tmp_path

    return make


def run(where: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python without the packages of this environment."""
    command = [sys.executable, "-S", *arguments]
    return subprocess.run(command, cwd=where, capture_output=True, text=True, check=False)


@pytest.mark.long
def test_the_core_fits_predicts_and_saves(environment):
    done = run(environment(), "-c", CORE)
    assert done.returncode == 0, done.stderr


@pytest.mark.long
@pytest.mark.parametrize(("extras", "command", "words"), REFUSED)
def test_commands_name_the_extra_that_is_missing(environment, extras, command, words):
    done = run(environment(*extras), "-m", "bagbasis.jobs", *command.split())
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert words in done.stderr
    assert "Traceback" not in done.stderr
