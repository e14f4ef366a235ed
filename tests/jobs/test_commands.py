"""bags models: what is in a registry, and which model is the champion, from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bagbasis import DoubleBasisRegressor
from bagbasis.operations import Registry
from tests.jobs.running import bags, cli, done, refused
from tests.models.predicting import fitted


@pytest.fixture
def registry(tmp_path):
    """Two models, none of them champion."""
    made = Registry(tmp_path / "registry")
    made.register(fitted("one target"), report={"rmse": 0.123456, "note": "words", "ok": True})
    made.register(fitted("classes"), report={"n_test": 12_000})
    return made


@pytest.fixture
def names(registry):
    return [record.name for record in registry.list()]


def test_promote_list_and_roll_back(registry, names):
    """The champion is the model that was promoted last; each command says what it changed."""
    first, second = names
    url = registry.url
    assert done("models", "promote", url, first) == f"the champion is {first}, the first one\n"
    assert f"is {second}, instead of {first}" in done("models", "promote", url, second)
    assert "the champion already; nothing changed" in done("models", "promote", url, second)
    assert registry.current() == second
    message = json.loads(done("models", "promote", url, second, "--json"))
    assert message == {"champion": second, "before": second}
    assert f"is {first} again, instead of {second}" in done("models", "rollback", url)
    assert registry.current() == first
    assert len(registry.history()) == 3


def test_a_saved_model_is_added(tmp_path):
    """By its URL, as of fit or tune; with --promote it is what is served."""
    model, url = fitted("one target"), str(tmp_path / "registry")
    model.save(tmp_path / "model.zarr")
    text = done("models", "add", url, tmp_path / "model.zarr")
    [record] = Registry(url).list()
    assert text == (
        f"{record.name}\nmake it the champion with: bags models promote {url} {record.name}\n"
    )
    assert not record.current
    text = done("models", "add", url, tmp_path / "model.zarr", "--promote")
    assert text == f"{record.name} is the champion; serve it with: bags serve {url}\n"
    assert Registry(url).current() == record.name
    answered = json.loads(done("models", "add", url, tmp_path / "model.zarr", "--json"))
    assert answered == {"model": record.name, "champion": record.name}
    assert "no model" in refused(1, "models", "add", url, tmp_path / "nothing.zarr")


def test_a_champion_of_another_kind_is_warned_of(registry, names, tmp_path):
    """What is served predicts something else from then on; one of the same kind is no matter."""
    first, second = names
    assert bags("models", "promote", registry.url, first).stderr == ""
    line = bags("models", "promote", registry.url, second).stderr
    assert f"{second} is DoubleBasisClassifier; the champion before, {first}, Double" in line
    rng = np.random.default_rng(0)
    points = [rng.normal(0, s, (10, 2)) for s in range(1, 41)]
    for name, columns in (("m", ["a", "b"]), ("n", ["b", "a"]), ("o", ["a", "c"])):
        frames = [pd.DataFrame(bag, columns=columns) for bag in points]
        model = DoubleBasisRegressor("moments", alpha=0.1).fit(frames, np.arange(40.0))
        model.save(tmp_path / name)
    url = tmp_path / "other"
    lines = [bags("models", "add", url, tmp_path / name, "--promote").stderr for name in "mno"]
    assert lines[:2] == ["", ""]
    assert "takes the coordinates ['a', 'c']; the champion before" in lines[2]


@pytest.mark.long
def test_the_error_of_a_choice_is_listed(tmp_path, monkeypatch):
    """What `embedding="auto"` chose has an error by folds."""
    rng = np.random.default_rng(0)
    spreads = rng.uniform(0.5, 2.0, 40)
    bags = [rng.normal(0, s, (10, 1)) for s in spreads]
    registry = Registry(tmp_path / "registry")
    registry.register(model := DoubleBasisRegressor().fit(bags, spreads))
    monkeypatch.setenv("COLUMNS", "200")
    text = f"error by folds {model.summary().rows['error'].partition(';')[0]}"
    assert text.endswith(" times the best constant's")
    listed = done("models", "list", registry.url)
    assert text in listed
    assert "do not compare" not in listed
    other = DoubleBasisRegressor("moments", alpha=1e-3).fit(bags, spreads)
    judged = {"measure": "RMSE", "error": 0.1234, "standard_error": 0.0456}
    registry.register(other, report=judged)
    listed = done("models", "list", registry.url)
    assert "bags 40, RMSE 0.123 ± 0.046" in listed
    assert listed.splitlines()[-1].startswith("Errors of different measures or bags do not compare")
    assert "do not compare" not in done("models", "list", registry.url, "--format", "tsv")
    assert [record.cells[-1] for record in registry.list()] == [text, "RMSE 0.123 ± 0.046"]


def test_list(registry, names, monkeypatch):
    """A row a model: mark of the champion, its whole name, when, estimator and numbers."""
    registry.promote(names[1])
    monkeypatch.setenv("COLUMNS", "60")
    rows = cells(done("models", "list", registry.url, "--format", "tsv"))
    created = [record.created[:16].replace("T", "") for record in registry.list()]
    estimators = ["DoubleBasisRegressor", "DoubleBasisClassifier"]
    numbers = ["bags70,rmse0.1235", "bags70,n_test12,000"]
    answered = json.loads(done("models", "list", registry.url, "--json"))["models"]
    assert [(item["name"], item["current"]) for item in answered] == list(
        zip(names, [False, True], strict=True)
    )
    assert rows == [
        list(row) for row in zip(["", "*"], names, created, estimators, numbers, strict=True)
    ]


def test_damaged_model_is_listed(registry, names):
    """A model whose description is torn is in the list, and says so."""
    group = json.loads((path := group_of(registry, names[0])).read_text())
    del group["attributes"]["bagbasis_registration"]
    path.write_text(json.dumps(group))
    printed = done("models", "list", registry.url)
    assert names[0] in printed
    assert "damaged:" in printed


def test_nothing_there(tmp_path):
    """No registry, no champion before, or an unknown name, is one line."""
    url = tmp_path / "registry"
    line = refused(1, "models", "list", url)
    assert f"{url}: no registry there, or one without models; bags models add {url} MODEL" in line
    assert "no champion before any; promote a model" in refused(1, "models", "rollback", url)
    assert "no model 'abc'; registered are: none" in refused(1, "models", "promote", url, "abc")


def cells(table):
    """Cells of each row, without spaces, of a table with tabs."""
    _, _, *rows = table.splitlines()
    return [["".join(cell.split()) for cell in row.split("\t")] for row in rows]


def group_of(registry, name):
    return Path(registry.model_url(name)) / "zarr.json"


def test_errors_name_the_command_alone(tmp_path, capsys):
    """Also where the program is called as a module, whose name has blanks."""
    for program in ("bags", "python -m bagbasis.jobs"):
        with pytest.raises(SystemExit):
            cli.main(["models", "rollback", str(tmp_path / "registry")], prog_name=program)
        assert capsys.readouterr().err.startswith("bags: models rollback: ")
