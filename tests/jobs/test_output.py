"""What commands print: the result first, details, formats, errors as JSON, and the doctor."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from bagbasis import BagStore
from bagbasis.jobs import doctor
from bagbasis.jobs.page import unbroken
from bagbasis.jobs.shell import extra_with
from bagbasis.jobs.terminal import column_texts
from tests.jobs.running import bags, cli, settings

FIT = settings(embedding="moments", model__random_features="false", model__alpha=0.1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("output")
    rng = np.random.default_rng(0)
    points = [rng.normal(size=(9, 1)) * scale for scale in rng.uniform(0.5, 2, 60)]
    store = BagStore.create(folder / "s.zarr", n_dims=1, target_names=["y"])
    store.append(points, [bag.std() for bag in points])
    done = bags("fit", store.url, "-o", folder / "m.zarr", *FIT, *settings(holdout=0.4))
    assert done.exit_code == 0, done.output
    (folder / "fit.txt").write_text(done.stdout)
    return folder


@pytest.mark.long
def test_a_fit_prints_its_result_first(folder):
    """The verdict, what was fitted, the interval, a warning, what next: and no table."""
    first, *more = (folder / "fit.txt").read_text().splitlines()
    assert first.startswith("Predicting y: RMSE ")
    assert " ± " in first
    assert "held-out bags. That is " in first
    assert len(more) <= 4
    assert more[-1].startswith("Next: bags predict ")
    assert "n_passes" not in "".join(more)
    output = bags(
        "fit", folder / "s.zarr", "-o", folder / "v.zarr", "-v", *FIT, *settings(holdout=0.4)
    )
    assert output.stdout.splitlines()[0] == first
    assert "n_passes" in output.stdout


@pytest.mark.long
def test_quiet_prints_nothing(folder):
    """Not even progress; the work is done."""
    output = bags("predict", folder / "m.zarr", folder / "s.zarr", "-o", folder / "p.csv", "-q")
    assert (output.exit_code, output.stdout, output.stderr) == (0, "", "")
    assert len((folder / "p.csv").read_text().splitlines()) == 61


@pytest.mark.long
def test_arguments_stand_for_keys(folder):
    """A model, data and an output; too many of them are refused."""
    output = bags("evaluate", folder / "m.zarr", folder / "s.zarr", "-o", folder / "out")
    assert output.exit_code == 0, output.output
    assert output.stdout.startswith("Predicting y: RMSE ")
    page = (folder / "out" / "report.html").read_text()
    link = '<a href="{0}">{0}</a>'
    pictures = ", ".join(map(link.format, ("predictions.png", "residuals.png")))
    assert f"Pictures next to this page: {pictures}" in page
    first, second, following = output.stdout.splitlines()[0], *page.split("<h1>")[1].split("</h1>")
    assert unbroken(first).startswith(second.strip())
    assert "held-out" in second
    command = f"bags predict {folder / 'm.zarr'} {folder / 's.zarr'} -o predictions.parquet"
    assert f"<b>Next:</b> {command}" in following.partition("What to worry about")[0]
    assert f"Next: {command}" in output.stdout
    output = bags("predict", "a", "b", "c")
    assert output.exit_code == 2
    assert "too many arguments" in output.stderr


def test_tables_without_a_terminal(folder):
    """Cells side by side, or with tabs in between; no line is drawn, and none ends in blanks."""
    plain = bags("info", folder / "s.zarr").stdout
    assert not set("│┃━─┏") & set(plain)
    assert all(line == line.rstrip() for line in plain.splitlines())
    tsv = bags("info", folder / "s.zarr", "--format", "tsv").stdout
    assert "n_bags\t60" in tsv.splitlines()
    assert json.loads(bags("info", folder / "s.zarr", "--format", "json").stdout)["n_bags"] == 60


@pytest.mark.parametrize("words", [["--json"], ["--format", "json"], ["--format=json"]])
def test_errors_are_json_where_json_is_asked_for(words, tmp_path):
    """Errors of a job, and of an unreadable command line; stderr has its line all the same."""
    output = bags("info", tmp_path / "none.zarr", *words)
    error = json.loads(output.stdout)["error"]
    assert error["type"] == "StoreError"
    assert output.stderr.strip() == f"bags: {error['message']}"
    output = bags("fit", "--nope", *words)
    assert json.loads(output.stdout)["error"]["type"] == "UsageError"
    assert bags("fit", "--nope").stdout == ""


@pytest.mark.parametrize(
    ("cells", "texts"),
    [
        ([0.9995, 1.0, 0.3851], ["0.9995", "1.0000", "0.3851"]),
        ([0.7633, -0.0003191, None], ["0.7633", "-0.0003", "-"]),
        ([1504.2, 3.5], ["1,504", "4"]),
        ([1e-9, 0.3], ["1e-09", "0.3"]),
        ([0.5, "a"], ["0.5", "a"]),
        ([1, 2000], ["1", "2,000"]),
    ],
)
def test_a_column_has_one_number_of_decimals(cells, texts):
    """But for p-values over many powers of ten, and columns of texts."""
    assert column_texts(cells) == texts


def test_the_doctor(folder, tmp_path):
    """Versions, memory and kernels; a store that does not answer is an error."""
    result = doctor.examine((str(folder / "s.zarr"),))
    assert result["versions"]["numpy"] == np.__version__
    assert result["stores"][str(folder / "s.zarr")]["bags"] == 60
    assert doctor.problems(result) == []
    result = doctor.examine((str(tmp_path / "none.zarr"),), "tcp://localhost:nope")
    assert len(doctor.problems(result)) == 2


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell, monkeypatch):
    """A script for each shell; keys, datasets and profiles are completed."""
    assert "_BAGS_COMPLETE" in bags("completion", shell).stdout
    words = {"COMP_WORDS": "bags fit --set model.al", "COMP_CWORD": "3"}
    words |= {"COMP_CWORD": "model.al"} if shell == "fish" else {}  # as each script has it
    message = CliRunner().invoke(
        cli, [], env={"_BAGS_COMPLETE": f"{shell}_complete", **words}, prog_name="bags"
    )
    assert "model.alpha=" in message.output


@pytest.mark.parametrize(
    ("module", "extra"),
    [
        ("matplotlib.pyplot", "plots"),
        ("bagbasis.data.gone", None),  # a broken installation: no extra mends it
        ("nowhere", None),
    ],
)
def test_the_extra_of_a_missing_module(module, extra):
    assert extra_with(module) == extra
