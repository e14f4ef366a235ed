"""What stands in the hosted runner's files and on the page of promises is what the code does."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

import bagbasis
from bagbasis.core.yaml_text import parse_yaml
from bagbasis.data.store import schema
from bagbasis.models import saving
from bagbasis.models.predictions import stored
from bagbasis.operations.monitoring import reference
from bagbasis.operations.registry import pointer
from bagbasis.operations.retraining import state

ROOT = Path(__file__).parents[1]
FILES = sorted((ROOT / ".github").rglob("*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_files_are_yaml(file):
    """A runner or a form that cannot be parsed is ignored without a word."""
    assert isinstance(parse_yaml(file.read_bytes(), file.name), dict)


def test_the_runner_tests_the_pythons_that_the_package_names():
    """With the targets of the Makefile, which exist."""
    jobs = parse_yaml((ROOT / ".github/workflows/ci.yml").read_bytes(), "ci.yml")["jobs"]
    named = [
        line.rpartition(" ")[2]
        for line in PROJECT["project"]["classifiers"]
        if re.search(r":: 3\.\d+$", line)
    ]
    assert jobs["test"]["strategy"]["matrix"]["python"] == named
    assert len(named) == 3
    targets = [
        target
        for job in jobs.values()
        for step in job["steps"]
        if step.get("run", "").startswith("make ")
        for target in step["run"].split()[1:]
    ]
    assert set(targets) == {"lint", "docs", "test", "test-long", "test-oldest", "test-newest"} | {
        "test-elsewhere"
    }
    makefile = (ROOT / "Makefile").read_text()
    for target in targets:
        assert f"\n{target}: " in makefile


def test_a_release_is_uploaded_by_no_token():
    """Rights are given one by one; no step knows a secret."""
    text = (ROOT / ".github/workflows/release.yml").read_text()
    release = parse_yaml(text.encode(), "release.yml")
    assert "secrets." not in text
    assert "password" not in text
    assert release["permissions"] == {"contents": "read"}
    assert release["jobs"]["publish"]["permissions"] == {"id-token": "write"}


def test_the_recipe_has_the_floors_of_the_package():
    """And of the extras that its command needs, by the names of conda-forge."""
    recipe = parse_yaml((ROOT / "recipe/recipe.yaml").read_bytes(), "recipe.yaml")
    project = PROJECT["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *extras["tables"], *extras["plots"], *extras["cli"]]
    renamed = {"matplotlib": "matplotlib-base", "duckdb": "python-duckdb", "dask": "dask-core"}
    renamed |= {"prometheus-client": "prometheus_client", "xxhash": "python-xxhash"}
    pairs = [item.partition(">=") for item in wanted]
    floors = {f"{renamed.get(name, name)} >={floor}" for name, _, floor in pairs}
    run = set(recipe["requirements"]["run"])
    assert run == floors | {f"python {project['requires-python']}"}
    assert recipe["context"]["version"] == bagbasis.__version__


def test_the_page_of_promises_names_the_format_versions():
    """Each row of its table, as the modules have them."""
    page = (ROOT / "docs/policy.md").read_text().partition("## Files")[2]
    rows = re.findall(r"^\| (.+) \| (.+) \| (.+) \|$", page, re.M)
    by_name = {name: (re.findall(r"\d+", written), read) for name, written, read in rows[1:]}
    written = [str(item.version) for item in (schema.STORE_FORMAT, schema.WITH_RESPONSES)]
    expected = {"bag store": (written, ", ".join(written))}
    for name, versions in {
        "model": {saving.MODEL_FORMAT.version},
        "registry, state of retraining": {
            pointer.REGISTRY_FORMAT.version,
            state.RETRAINING_FORMAT.version,
        },
        "reference of a `DriftDetector`": {reference.DETECTOR_FORMAT.version},
        "predictions in Zarr": {stored.PREDICTIONS_FORMAT.version},
    }.items():
        [version] = map(str, versions)
        expected[name] = ([version], version)
    assert by_name == expected
