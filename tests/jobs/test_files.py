"""Files are written whole or not at all."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from bagbasis.errors import StoreError
from bagbasis.jobs.files import plain, replacing, write_json


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
    write_json(tmp_path / "deep" / "report.json", report)
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


def test_an_error_while_writing_leaves_the_old_file(tmp_path):
    """What was there before stays, and nothing is left beside it."""
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(TypeError), replacing(path) as temporary:
        temporary.write_text("half") + "no number"
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


def test_a_full_disk_is_an_error_of_ours(tmp_path):
    """An OSError while writing names the file, and nothing is left."""
    path = tmp_path / "a.txt"
    with (
        pytest.raises(StoreError, match=r"a\.txt: can not be written \(No space"),
        replacing(path),
    ):
        raise OSError(28, "No space left on device")
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_can_not_be_made(tmp_path):
    """A file where a directory should be is an error that names the file."""
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"report\.json: can not be written"):
        write_json(tmp_path / "file" / "report.json", {})


def test_permissions_are_those_of_any_new_file(tmp_path):
    """Others may read a report as they may read any file of the user."""
    (tmp_path / "other").write_text("")
    write_json(tmp_path / "report.json", {})
    modes = {(tmp_path / name).stat().st_mode for name in ("other", "report.json")}
    assert len(modes) == 1


def test_plain_keeps_text_and_order():
    """A text is no list of letters, and keys stay in their order."""
    assert plain({"b": "text", "a": []}) == {"b": "text", "a": []}
    assert list(plain({"b": 1, "a": 2})) == ["b", "a"]
