"""Each package says what it is for; names of versions before 1.0 lead to their new place."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

from bagbasis.core.moved import MOVED
from tests.stubs import missing

ROOT = Path(__file__).parents[1]
FOLDERS = {
    file.parent.relative_to(ROOT).as_posix()
    for top in ("pipeline", "jobs")
    for file in (ROOT / top).rglob("__init__.py")
}
BEFORE = {
    "bags": ["Bags", "Box", "Responses", "as_bags", "as_responses"],
    "bases": ["BASES", "evaluate_basis", "index_set"],
    "clusters": ["connect"],
    "divergences": ["DivergenceKernel", "PSDRepair", "divergence_matrix"],
    "errors": ["BagbasisError", "DataError", "ParameterError", "StoreError"],
    "evaluation": ["cross_val_score", "evaluate", "judge_fit"],
    "fitting": ["Checkpoints"],
    "monitoring": ["DriftDetector", "drift_test"],
    "objectives": ["register_images", "select_coordinates"],
    "parameters": ["Integer", "ListOf", "checked"],
    "random_features": ["NystroemFeatures", "RandomFourierFeatures"],
    "registry": ["Registry", "log_model"],
    "registry.mlflow_models": ["log_model"],
    "retraining": ["Window", "retrain"],
    "store": ["BagStore", "merge_stores"],
    "tuning": ["Search", "tune"],
}


@pytest.mark.parametrize("folder", sorted(FOLDERS))
def test_a_package_says_what_it_is_for(folder):
    """In its first line, a sentence."""
    text = ast.get_docstring(ast.parse((ROOT / folder / "__init__.py").read_text())) or ""
    assert re.match(r"[\w`].{15,}[.)]$", text.split("\n")[0])


@pytest.mark.parametrize("name", BEFORE)
def test_names_of_before_lead_to_their_new_place(name, monkeypatch):
    monkeypatch.delitem(sys.modules, f"bagbasis.{name}", raising=False)
    place = f"bagbasis.{MOVED[name]}".rstrip(".")
    with pytest.warns(FutureWarning, match=rf"bagbasis.{name} is now part of {place}: "):
        old = importlib.import_module(f"bagbasis.{name}")
    new = importlib.import_module(place)
    for attribute in BEFORE[name]:
        assert getattr(old, attribute) is getattr(new, attribute)


def test_a_name_that_never_was_is_not_found():
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'bagbasis\.nowhere'"):
        importlib.import_module("bagbasis.nowhere")


def test_components_are_among_the_public_names():
    """The lists are written by ``make generated``."""
    assert missing() == {}


IN_MEMORY = """
import sys
import numpy as np
from bagbasis import DoubleBasisRegressor, evaluate

rng = np.random.default_rng(0)
spread = rng.uniform(0.5, 3, 60)
bags = [rng.normal(0, s, (20, 2)) for s in spread]
model = DoubleBasisRegressor().fit(bags[:50], spread[:50])
evaluate(model, bags[50:], spread[50:]), model.predict(bags[50:])
print(sorted({name.split(".")[0] for name in sys.modules}))
"""


def test_a_fit_in_memory_imports_no_package_for_stores_or_clusters():
    run = subprocess.run(
        [sys.executable, "-c", IN_MEMORY], cwd=ROOT, capture_output=True, text=True, check=True
    )
    imported = set(ast.literal_eval(run.stdout))
    assert {"bagbasis", "numba", "sklearn"} <= imported
    assert not imported & {"cryptography", "dask", "distributed", "numcodecs", "s3fs", "zarr"}
