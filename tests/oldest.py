"""``make test-oldest``: the core's tests with the oldest versions that pyproject.toml allows.

The floors of the core and of some extras become pip's constraints, in a virtual environment of
their own; pytest and what only tests use are as new as constraints.txt has them. With ``--newest``
there are no constraints: each package is as new as the registry has it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / ".venv"
EXTRAS = ("tables", "plots", "cli", "s3", "icechunk", "awkward", "xarray")
TOOLS = ("pytest", "pytest-timeout", "pytest-xdist", "hypothesis")  # as new as in constraints.txt
BESIDE = ("polars",)  # of `dev`, at its floor: frames that bags and stores are made of
FLOOR = re.compile(r"^([A-Za-z0-9._-]+)(\[[^]]*\])?>=([0-9.]+)$")

# no jobs, no object stores, no clusters: what somebody needs who imports bagbasis
TESTS = (
    *("tests/data/bags", "tests/data/store/test_store.py", "tests/data/store/test_bad_input.py"),
    *(
        "tests/data/store/test_xarray_datasets.py",
        "tests/data/store/test_reading.py",
        "tests/core/test_sums.py",
    ),
    *(
        "tests/embeddings/random_features",
        "tests/models/ridge",
        "tests/models/ridge",
        "tests/models/outcomes",
    ),
    *("tests/models/test_regressor.py", "tests/models/test_classifier.py"),
    *("tests/models/test_triple_basis.py", "tests/models/test_saving.py"),
    *("tests/models/test_conventions.py", "tests/models/test_streaming_ridge.py"),
    "tests/models/test_heads.py",  # whose trees are read from where scikit-learn has them inside
    *("tests/embeddings/test_contract.py", "tests/models/evaluation/test_cross_validation.py"),
    *("tests/data/storage/test_storage_files.py", "tests/data/storage/test_storage_lock.py"),
    *("tests/data/storage/test_zarr_reading.py", "tests/data/storage/test_temporary.py"),
    *("tests/hypotheses/test_fused.py", "tests/hypotheses/test_exact_mmd.py"),
    *("tests/hypotheses/test_independence.py", "tests/hypotheses/test_goodness_of_fit.py"),
)


def floors() -> dict[str, str]:
    """Return the oldest version of each package that the core, its extras and tests may have.

    Raises
    ------
    ValueError
        A requirement of the core has no floor.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *(item for name in EXTRAS for item in extras[name])]
    wanted += [item for item in extras["dev"] if item.startswith(BESIDE)]
    by_name = {}
    for item in wanted:
        match = FLOOR.match(item)
        if match is None:
            raise ValueError(f"pyproject.toml: {item!r} has no floor; expected 'name>=version'")
        by_name[match[1]] = match[3]
    return by_name


def main() -> int:
    """Make the environment, unless it has these versions, and run the tests in it."""
    named = sys.argv[1:]
    newest = "--newest" in named
    if newest:
        named.remove("--newest")
    folder = FOLDER / ("newest" if newest else "oldest")
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    pins = (ROOT / "constraints.txt").read_text().splitlines()
    tools = [pin for pin in pins if pin.partition("==")[0] in TOOLS]
    oldest = "" if newest else "".join(f"{k}=={v}\n" for k, v in sorted(floors().items()))
    made = folder / "versions.txt"
    if not made.exists() or made.read_text() != oldest:
        venv.create(folder, clear=True, with_pip=True)
        wanted = folder / "wanted.txt"
        wanted.write_text(oldest)
        quiet = ("--quiet", "--disable-pip-version-check", "--constraint", str(wanted))
        ours = ["--editable", f"{ROOT}[{','.join(EXTRAS)}]", *BESIDE]
        subprocess.run([python, "-m", "pip", "install", *quiet, *ours, *tools], check=True)
        wanted.rename(made)
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder / "kernels")}
    # what an old package says of its own old dependencies is no fault of ours
    command = [python, "-m", "pytest", "-W", "ignore::DeprecationWarning", "-n", "logical"]
    command += ["--dist", "loadfile", "-p", "no:cacheprovider", *(named or TESTS)]
    print(" ".join(oldest.split()), flush=True)
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
