"""The recipes of CONTRIBUTING, followed to the letter in a package that is not installed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bagbasis import ModelError, load_model
from tests.core.recipes import MODULES, blocks_of, write_package

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """The folder of the scratch package."""
    folder = tmp_path_factory.mktemp("scratch")
    write_package(folder)
    return folder


def run(package: Path, code: str) -> None:
    """Run code with the package on the path."""
    start = f"import sys\nsys.path.insert(0, {str(package)!r})\n"
    done = subprocess.run(
        [sys.executable, "-P", "-c", start + code], cwd=package, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_every_recipe_has_a_module():
    """Five kinds of components, each with at most four files to touch."""
    assert len(MODULES) == 5
    for what, module in MODULES.items():
        first, *_ = blocks_of(what)
        compile(first, module, "exec")
        assert first.startswith('"""')


@pytest.mark.long
def test_components_of_another_package(package):
    """They are used by name, saved, configured and checked as ours; a broken one is left out, and
    the contract tests ask for no example of a statistic's methods: a fifth file. Without their
    package, a saved model says what it needs."""
    saved = str(package / "model.zarr")
    run(
        package,
        f"""
import tempfile, warnings
import numpy as np
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    from bagbasis import DoubleBasisRegressor, load_model
    from bagbasis.embeddings import EMBEDDINGS
    assert "centre" in EMBEDDINGS
    assert EMBEDDINGS["moments"].__name__ == "MomentsEmbedding"
texts = sorted(str(one.message) for one in told)
assert "broken" in texts[0] and "update or uninstall wavelets" in texts[0], texts
assert "'moments' of wavelets" in texts[1] and "left out" in texts[1], texts
from bagbasis.core.errors import ParameterError
from bagbasis.jobs.configs.sections import build, embedding_section
section = embedding_section("centre")
assert section.power == 1.0
assert build(section).power == 1.0
bags = list(np.random.default_rng(0).random((30, 5, 2)))
y = np.array([bag.mean() for bag in bags])
model = DoubleBasisRegressor("centre", alpha=1e-3).fit(bags, y)
model.save({saved!r})
again = load_model({saved!r})
assert (again.predict(bags) == model.predict(bags)).all()
wide = DoubleBasisRegressor("centre", "wide", alpha=1e-3).fit(bags, y).features_.second
assert wide.scale == 3 * model.features_.second.scale
try:
    EMBEDDINGS["centre"](power=9).fit(bags)
except ParameterError as error:
    assert str(error) == "power is 9; expected a number, 0 < power ≤ 4"
else:
    raise AssertionError

from bagbasis.hypotheses import TWO_SAMPLE, two_sample_test
rng = np.random.default_rng(0)
a, b = rng.standard_normal((40, 2)), rng.standard_normal((40, 2)) + 2
result = two_sample_test(a, b, statistic="mean_gap", n_permutations=99)
assert result.p_value == 0.01, result
assert result.name == "mean_gap(power=1.0)", result.name
assert "mean_gap" in TWO_SAMPLE and len(TWO_SAMPLE) == 14
try:
    TWO_SAMPLE["mean_gap"](power=0)
except ParameterError as error:
    assert str(error) == "power is 0; expected a number, 0 < power ≤ 4", error
else:
    raise AssertionError


from bagbasis import cross_val_score
exact = DoubleBasisRegressor("moments", False, alpha=1e-2, precision="float64").fit(bags, y)
eigen = DoubleBasisRegressor("moments", False, alpha=1e-2, precision="float64", solver="eigen")
assert eigen.fit(bags, y).report_["solver"] == "eigen"
np.testing.assert_allclose(eigen.predict(bags), exact.predict(bags), rtol=1e-9)
with tempfile.TemporaryDirectory() as place:
    eigen.save(place + "/m.zarr")
    assert load_model(place + "/m.zarr").get_params()["solver"] == "eigen"
for wrong, message in (
    (lambda: eigen.set_params(alpha="gcv").fit(bags, y), "give alpha=0.1"),
    (lambda: cross_val_score(eigen.set_params(alpha=0.1), bags, y), "solver='eigen' keeps no sums"),
    (lambda: eigen.set_params(solver="eigne").fit(bags, y), "did you mean 'eigen'"),
):
    try:
        wrong()
    except ParameterError as error:
        assert message in str(error), error
    else:
        raise AssertionError

# classes in registries have examples; a public method with parameters would need one
sys.path.insert(0, {str(ROOT)!r})
from tests.contract.public import PublicCallable
from wavelets.mean_gap import MeanGap
methods = [getattr(MeanGap, name) for name in vars(MeanGap) if not name.startswith("_")]
assert MeanGap.measure in methods
calls = [method for method in methods if callable(method)]
assert not [call for call in calls if PublicCallable(call, MeanGap).needs_example]
""",
    )
    with pytest.raises(ModelError, match="embedding 'centre', which is not registered here"):
        load_model(saved)


@pytest.mark.long
def test_the_embedding_holds_to_the_contract(package):
    """It passes the tests of every embedding, as CONTRIBUTING says; jobs describe its keys."""
    files = ("embeddings/test_contract.py", "contract/test_docstrings.py", "jobs/test_configs.py")
    command = [sys.executable, "-m", "pytest", "-rA", "-p", "no:cacheprovider", "-m", ""]
    done = subprocess.run(
        [*command, "-k", "centre or every_key_has", *(f"tests/{file}" for file in files)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(package)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    for name in ("test_out_of_box[centre", "CentreEmbedding", "help_text[fit]"):
        assert name in done.stdout, name


@pytest.mark.long
def test_formats_solvers_and_jobs_on_the_command_line(package):
    """Keys, help, checks and reports come without a line in the command."""
    entry = "{" + blocks_of("a job")[1] + "}"
    run(
        package,
        f"""
from pathlib import Path
import numpy as np
import bagbasis.jobs.commands
from bagbasis.jobs import job
bagbasis.jobs.commands.__path__.append({str(package / "jobs")!r})
job.JOBS |= eval({entry!r}, vars(job))
from click.testing import CliRunner
from bagbasis import BagStore
from bagbasis.jobs.cli import cli
from bagbasis.jobs.configs.printed import config_text

def bags(code, *args):
    result = CliRunner().invoke(cli, args, prog_name="bags")
    assert result.exit_code == code, result.output
    return result.output

for i in range(3):
    Path(f"m{{i}}.atoms").write_text("# x y\\n" + "1 2\\n" * (i + 1))
assert "scale: 1.0                  # For .atoms files: Factor" in config_text("ingest")
assert "Factor of all coordinates" in " ".join(bags(0, "ingest", "--help").split())
given = ["--set", "points=m?.atoms", "--set", "url=s.zarr"]
assert "key 'scale'" in bags(2, "ingest", *given, "--set", "scale=-1")
assert "key 'missing' is for tables" in bags(2, "ingest", *given, "--set", "missing=drop_point")
line = bags(2, "ingest", "--set", "points=a.csv", "--set", "url=t.zarr", "--set", "scale=2")
assert "key 'scale' is for .atoms files" in line, line
bags(0, "ingest", *given, "--set", "scale=2")
store = BagStore.open("s.zarr")
assert store.ids().tolist() == ["m0", "m1", "m2"]
np.testing.assert_array_equal(store.read()[2], [[2.0, 4.0]] * 3)
Path("m3.atoms").write_text("1 nan\\n")
assert "m3.atoms: row 0, column 1 is nan" in bags(1, "ingest", *given, "--set", "mode=overwrite")

steps = ["generate", "steps", "--set", "url=g.zarr", "--set", "n_bags=12"]
bags(0, *steps, "--set", "params.n_points=3")
store = BagStore.open("g.zarr")
assert (store.n_bags, store.n_points, store.target_names) == (12, 36, ("height",)), store
assert "did you mean 'steps'" in bags(2, "generate", "step", "--set", "url=h.zarr")

assert "'eigen'" in config_text("fit")
assert "Count the bags of a store." in bags(0, "--help")
assert "points of a bag that counts" in " ".join(bags(0, "count", "--help").split())
assert config_text("count").startswith("# bags count count.yaml")
assert "at_least: 1" in config_text("count")
Path("count.yaml").write_text(config_text("count"))
import json
bags(0, "count", "s.zarr", "--set", "at_least=2", "--set", "report=r.json")
assert json.loads(Path("r.json").read_text())["n_bags"] == 2
assert "key 'at_least' is 0" in bags(2, "count", "s.zarr", "--set", "at_least=0")
""",
    )
