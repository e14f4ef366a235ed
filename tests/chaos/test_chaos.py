"""Campaigns see what is lost, wrong, stuck or left over: these jobs do each of it on purpose."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bagbasis import StoreError
from tests.chaos import children, flips, kills
from tests.chaos.accounting import Lost, Stuck, Tally, Wrong
from tests.chaos.contents import Place
from tests.chaos.jobs import Job
from tests.chaos.kills import Files, Killed, check_between

pytestmark = pytest.mark.long


def old(place: Place) -> None:
    Path(place.at("result")).write_text("old")


def renamed(place: Place) -> None:
    """As it should be done; a partial file of a killed call is taken away by the next."""
    partial = Path(place.at("partial"))
    partial.write_text("new")
    partial.replace(place.at("result"))


def deleted_first(place: Place) -> None:
    Path(place.at("result")).unlink(missing_ok=True)
    renamed(place)


def torn(place: Place) -> None:
    with open(place.at("result"), "w", buffering=1) as file:
        file.write("half\n")
        Path(place.at("other")).touch()
        file.seek(0)
        file.truncate()
        file.write("new")


def only_once(place: Place) -> None:
    with open(place.at("taken"), "x"):
        renamed(place)


def littered(place: Place) -> None:
    Path(place.at(f"left-{time.monotonic_ns():032x}")).touch()
    renamed(place)


def result(place: Place) -> str | None:
    path = Path(place.at("result"))
    return path.read_text() if path.exists() else None


def campaign(run, folder):
    single = Killed(Job("job", old, run, result, renamed), Files)
    single.begin(folder)
    return single


def trials(item, folder, n=4):
    tally = Tally()
    for seed in range(n):
        item.trial(np.random.default_rng(seed), folder, tally)
    assert tally.kills > n / 2
    return tally


def test_a_job_that_is_right(tmp_path):
    assert not trials(campaign(renamed, tmp_path), tmp_path).is_bad


@pytest.mark.parametrize(
    ("run", "fault"), [(deleted_first, Lost), (torn, Wrong), (only_once, Stuck)]
)
def test_a_job_that_fails(tmp_path, run, fault):
    single = campaign(run, tmp_path)
    with pytest.raises(fault):
        trials(single, tmp_path)


def test_a_job_that_leaves_junk(tmp_path, monkeypatch):
    monkeypatch.setattr(kills, "SWEPT", 1)
    assert trials(campaign(littered, tmp_path), tmp_path).junk > 0


def test_a_job_that_stands_still(tmp_path, monkeypatch):
    """It is killed when patience ends."""
    monkeypatch.setattr(children, "PATIENCE", 0.5)
    with pytest.raises(Stuck, match="no end after"):
        children.run(time.sleep, 60, place=tmp_path / "place")


GROWS = Job("job", old, old, result, old)


@pytest.mark.parametrize(
    ("now", "keeps", "fault"),
    [
        ("ab", True, None),
        ("abc", True, None),
        ("abcd", True, None),
        ("a", True, Lost),
        ("abx", True, Wrong),
        ("", True, Lost),
        ("", False, None),
        ("abx", False, Wrong),
    ],
)
def test_what_may_be_seen_between(now, keeps, fault):
    """Rows that were added to a list that grows from ab to abcd."""
    job = replace(GROWS, keeps=keeps)
    arguments = job, list("ab"), list(now), list("abcd")
    if fault is None:
        check_between(*arguments)
    else:
        with pytest.raises(fault):
            check_between(*arguments)


# ---------------------------------------------------------------------- flips, and the proxy


def test_a_flip_that_changes_a_number_in_silence(tmp_path):
    """It counts as wrong; a reader that compares a checksum finds every flip."""
    content = b"1234567890"

    def careless(folder):
        return (folder / "numbers").read_bytes()

    def careful(folder):
        if (folder / "numbers").read_bytes() != content:
            raise StoreError("found")
        return content

    def broken(folder):
        if (folder / "numbers").read_bytes() != content:
            raise ZeroDivisionError

    (tmp_path / "numbers").write_bytes(content)
    ends = [
        flips.flip(flips.Subject("", tmp_path, read), 5, 0) for read in (careless, careful, broken)
    ]
    assert [dict(end) for end in ends] == [
        {"silent": 5},
        {"found": 5},
        {"raw ZeroDivisionError": 5},
    ]
    assert (tmp_path / "numbers").read_bytes() == content
