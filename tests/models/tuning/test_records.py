"""The file that a tune goes on from: what is in it, and who wrote it."""

from __future__ import annotations

import json

import pytest

from bagbasis import StoreError
from bagbasis.core.saved import NewerError
from bagbasis.models import Score
from bagbasis.models.tuning.records import TUNE_FORMAT, Records

SCORE = Score(
    error=0.5,
    n_bags=10,
    n_train=8,
    n_held_out=2,
    alpha=1.0,
    alphas=(1.0,),
    errors=(0.5,),
    seconds=0.1,
)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "state.json"
    Records(path, "data").put("key", SCORE)
    return path


def test_scores_are_found_again(path):
    assert Records(path, "data").get("key") == SCORE
    assert Records(path, "other data").get("key") is None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda values: values.update({TUNE_FORMAT.key: TUNE_FORMAT.version + 1}), "of format 2"),
        (lambda values: values["scores"]["key"].update(strata=3), "'strata'"),
    ],
    ids=["format", "field"],
)
def test_newer_versions_are_named(path, change, words):
    """Their scores are neither dropped nor called damaged, and the file stays as it is."""
    values = json.loads(path.read_text())
    change(values)
    path.write_text(json.dumps(values))
    before = path.read_bytes()
    with pytest.raises(StoreError, match="a newer version of bagbasis wrote it") as refused:
        Records(path, "data")
    assert words in str(refused.value)
    assert isinstance(refused.value.__cause__, NewerError)
    assert "delete" not in str(refused.value)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "change",
    [
        lambda values: values.pop(TUNE_FORMAT.key),
        lambda values: values.update({TUNE_FORMAT.key: "2"}),
        lambda values: values["scores"]["key"].pop("alpha"),
    ],
    ids=["no format", "a text", "a field less"],
)
def test_damage_is_called_damage(path, change):
    values = json.loads(path.read_text())
    change(values)
    path.write_text(json.dumps(values))
    with pytest.raises(StoreError, match=r"not the state of a tune .*delete it to start over"):
        Records(path, "data")


def test_earlier_formats_begin_anew(path):
    values = json.loads(path.read_text())
    path.write_text(json.dumps({**values, TUNE_FORMAT.key: TUNE_FORMAT.version - 1}))
    assert Records(path, "data").get("key") is None
