"""What the wheel and the sdist hold, and what somebody who installs the wheel has."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = {"bagbasis": "pipeline", "bagbasis.jobs": "jobs", "bagbasis.configs": "configs"}
KEPT = ("pipeline", "jobs", "configs", "deploy", "tests")
FILES = (
    *("pyproject.toml", "setup.py", "MANIFEST.in", "Makefile"),
    *("README.md", "LICENSE", "CHANGELOG.md"),
)


TYPED = """
from bagbasis import BagStore, DoubleBasisRegressor, ProjectionEmbedding, load_model
model = DoubleBasisRegressor()
model.fit(BagStore.open("bags.zarr"), target="k").save("model.zarr")
model.set_params(alpha=0.1).score([[[0.0, 1.0]]], [1.0])
load_model("model.zarr").get_params()["alpha"]
ProjectionEmbedding().fit_transform([[[0.0, 1.0]]])
"""
# Commands in one process: info, a config, an experiment, the profiles that the wheel contains.
INSTALLED = """
from bagbasis.execution.clusters.profiles import load_profile
from bagbasis.jobs.cli import cli
from click.testing import CliRunner

def bags(code, *words):
    result = CliRunner().invoke(cli, words, prog_name="bags")
    assert result.exit_code == code, result.output
    return result.output

assert "20" in bags(0, "info", "example-output/bags.zarr")
assert "demo-output" in bags(0, "config", "demo")
assert "the experiments are in the repository" in bags(2, "experiment", "js-gram")
assert load_profile("slurm").cluster == "slurm"
urls = ("--set", "data_url=example-output/bags.zarr", "--set", "model_url=m.zarr")
said = bags(2, "fit", *urls, "--cluster", "slurmm")
assert "no cluster profile 'slurmm'" in said
assert "'slurm'" in said
"""
# The types of what bagbasis imports are not in question, and take four fifths of the time.
ONLY_OURS = "[mypy]\nfollow_imports = skip\n[mypy-bagbasis.*]\nfollow_imports = normal\n"


def run(*command, **options):
    """What a command prints; it has to succeed."""
    result = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, check=False, **options
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The folder with a wheel and an sdist of a copy of this repository."""
    where = tmp_path_factory.mktemp("package")
    source = where / "source"
    source.mkdir()
    ignored = shutil.ignore_patterns("__pycache__", "*.pyc")
    for name in KEPT:
        shutil.copytree(ROOT / name, source / name, ignore=ignored)
    for name in (*FILES, "constraints.txt"):
        shutil.copy(ROOT / name, source)
    code = "from setuptools import build_meta as b; b.build_wheel('..'); b.build_sdist('..')"
    run(sys.executable, "-c", code, cwd=source)
    return where


@pytest.fixture(scope="module")
def installed(built):
    """A virtual environment with the wheel, and with the packages of this one."""
    folder = built / "venv"
    run(sys.executable, "-m", "venv", "--without-pip", folder)
    python = folder / "bin" / "python"
    site = Path(run(python, "-c", "import site; print(site.getsitepackages()[0])").strip())
    shared = [path for path in sys.path if path.endswith("site-packages")]
    (site / "shared.pth").write_text("\n".join(shared))
    [wheel] = built.glob("*.whl")
    quiet = ("--quiet", "--disable-pip-version-check", "--no-deps")
    # of its modules, the tests import a few
    run(sys.executable, "-m", "pip", "--python", python, "install", "--no-compile", *quiet, wheel)
    return folder / "bin", site


def folders_with_files(top):
    """Folders of Python or YAML files, as paths below ``top``."""
    values = {
        path.parent for ending in ("py", "yaml") for path in (ROOT / top).rglob(f"*.{ending}")
    }
    return {folder.relative_to(ROOT / top) for folder in values}


@pytest.mark.packaging
def test_every_folder_of_modules_is_in_the_wheel(built):
    [wheel] = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as files:
        packed = {Path(name).parent for name in files.namelist() if name.endswith((".py", ".yaml"))}
    expected = {
        Path(*name.split("."), folder)
        for name, top in FOLDERS.items()
        for folder in folders_with_files(top)
        if folder.parts[:1] != ("experiments",)
    }
    assert packed == expected


@pytest.mark.packaging
def test_sdist_is_complete(built):
    """The sdist holds what the repository does, without what it ignores."""
    [archive] = built.glob("*.tar.gz")
    with tarfile.open(archive) as files:
        names = {name.partition("/")[2] for name in files.getnames()}
    tracked = run("git", "ls-files", *KEPT, *FILES, "constraints.txt", cwd=ROOT).split()
    missing = {name for name in tracked if (ROOT / name).exists()} - names
    assert missing == set()


@pytest.mark.packaging
def test_only_bagbasis_is_installed(installed):
    """No package of ours but ``bagbasis`` lies in the site-packages."""
    _, site = installed
    names = {path.name for path in site.iterdir() if path.is_dir()}
    assert {name for name in names if "dist-info" not in name} == {"bagbasis"}


@pytest.mark.packaging
def test_installed_command_runs_from_any_folder(installed, tmp_path):
    """The installed ``bags`` prints its configs and does a job, without the repository."""
    binaries, _ = installed
    bags, where = binaries / "bags", {"cwd": tmp_path, "env": os.environ | {"PYTHONPATH": ""}}
    (tmp_path / "generate.yaml").write_text(run(bags, "config", "generate", **where))
    run(bags, "generate", "generate.yaml", "--set", "n_bags=20", **where)
    run(binaries / "python", "-c", INSTALLED, **where)


@pytest.mark.packaging
def test_the_wheel_is_lean_and_says_whose_it_is(built):
    """No kept results of experiments; authors, keywords and classifiers are in its metadata."""
    [wheel] = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as files:
        names = files.namelist()
        [metadata] = [name for name in names if name.endswith("METADATA")]
        text = files.read(metadata).decode()
    assert [name for name in names if name.endswith((".png", ".json"))] == []
    assert [name for name in names if "/experiments/" in name] == []
    for line in (
        "Author: bagbasis developers",
        "Keywords: bags,",
        "Classifier: Typing :: Typed",
        "Classifier: Operating System :: POSIX :: Linux",
    ):
        assert f"\n{line}" in text


@pytest.mark.packaging
def test_type_checkers_see_the_package(installed, tmp_path):
    """Public methods are typed, and one that is not there is an error."""
    binaries, _ = installed
    # nobody would read a cache of it
    options = ["--python-executable", str(binaries / "python"), "--cache-dir", os.devnull]
    (tmp_path / "mypy.ini").write_text(ONLY_OURS)
    (tmp_path / "good.py").write_text(TYPED)
    (tmp_path / "wrong.py").write_text(TYPED.replace("model.fit(", "model.fitt("))
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", *options, "good.py", "wrong.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    [error] = [line for line in checked.stdout.splitlines() if "error:" in line]
    assert error.startswith("wrong.py:4: ")
    assert '"DoubleBasisRegressor" has no attribute "fitt"' in error
