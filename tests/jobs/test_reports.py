"""Reports as JSON: plain numbers, in a file that others may read."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from bagbasis import BagStore, StoreError
from bagbasis.jobs.files import write_report
from tests.jobs.running import done, refused, settings
from tests.oracles.labelled import labelled_bags, stored


def test_json_holds_plain_numbers(tmp_path):
    """numpy values become numbers, NaN and infinity null, anything else its text."""
    report = {
        "int": np.int64(3),
        "float": np.float32(0.5),
        "nan": math.nan,
        "inf": np.float64("inf"),
        "array": np.array([[1, 2], [3, 4]]),
        "tuple": ("a", None, True),
        "path": tmp_path,
        5: {"nested": np.bool_(True)},
    }
    write_report(tmp_path / "deep" / "report.json", report)
    assert json.loads((tmp_path / "deep" / "report.json").read_text()) == {
        "int": 3,
        "float": 0.5,
        "nan": None,
        "inf": None,
        "array": [[1, 2], [3, 4]],
        "tuple": ["a", None, True],
        "path": str(tmp_path),
        "5": {"nested": True},
    }


def test_a_directory_that_can_not_be_made(tmp_path):
    """A file where a directory should be is an error that names the file."""
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"report\.json: cannot be written"):
        write_report(tmp_path / "file" / "report.json", {})


@pytest.mark.parametrize("name", ["r.json", "r.html"])
def test_a_report_and_its_page_lie_side_by_side(tmp_path, name):
    """Whichever of the two is named."""
    bags, y = labelled_bags(40, most=12)
    store = stored(tmp_path / "s.zarr", bags, y)
    urls = {"data_url": store.url, "model_url": tmp_path / "m.zarr"}
    done("fit", *settings(**urls, report=tmp_path / name, model={"embedding": "moments"}))
    assert json.loads((tmp_path / "r.json").read_text())["job"] == "fit"
    assert (tmp_path / "r.html").read_text().startswith("<!doctype html>")


@pytest.mark.parametrize("content", ["a,b\n1,2\n", "{", "[1]", '{"job": "fit"}', "link", "folder"])
def test_what_is_no_report_is_not_replaced(tmp_path, content):
    """A job refuses at once to write its report over a file of somebody else."""
    path = tmp_path / "important"
    if content == "folder":
        path.mkdir()
    elif content == "link":
        path.symlink_to("/dev/stdout")
    else:
        path.write_text(content)
    line = refused(1, "info", "/nowhere", *settings(report=path))
    assert "not a report of a job" in line or "a symbolic link to /dev/stdout" in line
    assert path.is_symlink() or path.is_dir() or path.read_text() == content


def test_a_report_is_replaced(tmp_path):
    """An older report, and an empty file, make way."""
    path = tmp_path / "report.json"
    path.touch()
    for _ in range(2):
        BagStore.create(tmp_path / "s.zarr", 2, overwrite=True)
        done("info", tmp_path / "s.zarr", *settings(report=path))
        assert json.loads(path.read_text())["job"] == "info"


def test_a_report_replaces_nothing_that_its_job_reads_or_writes(regression, tmp_path, monkeypatch):
    """Both keys are named, before anything is done."""
    monkeypatch.chdir(tmp_path)
    words = settings(data_url=regression / "bags.zarr", model_url=regression / "model.zarr")
    line = refused(2, "predict", *words, *settings(output_url="p.csv", report=tmp_path / "p.csv"))
    assert "keys 'report' and 'output_url' are both 'p.csv'; give two places" in line
    assert not (tmp_path / "p.csv").exists()
    line = refused(2, "fit", *words, *settings(model_url="m.zarr", report="m.zarr"))
    assert "keys 'report' and 'model_url'" in line
    assert not (tmp_path / "m.zarr").exists()
