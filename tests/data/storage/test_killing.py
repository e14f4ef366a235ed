"""The tool that kills sees every way in which Python writes."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from bagbasis.core.systems import exchange_paths
from tests.data.storage.killing import each_kill


def write_in_every_way(place: Path) -> None:
    """One operation of each kind, and some that write nothing here."""
    (place / "read").read_text()
    with (place / "a").open("w") as file:
        file.write("a")
    (place / "folder").mkdir()
    (place / "a").replace(place / "folder" / "b")
    os.truncate(place / "folder" / "b", 0)
    (place / "link").symlink_to("folder")
    exchange_paths(place / "folder", place / "link")
    shutil.rmtree(place / "link")
    (place / "folder").unlink()
    place.with_name("elsewhere").touch()


EVENTS = """open a|os.mkdir folder|os.rename folder/b|os.truncate folder/b|os.symlink link
ctypes.dlsym ?|os.remove link/b|os.rmdir link|os.remove folder""".replace("\n", "|").split("|")


@pytest.mark.long
@pytest.mark.parametrize("most", [30, 4])
def test_every_write_is_a_place_to_die(tmp_path, most):
    """Each kill leaves what the writes before it made, and nothing of those behind it."""
    place = tmp_path / "place"
    place.mkdir()
    (place / "read").touch()
    remaining = {}
    for what in each_kill(write_in_every_way, place, most=most):
        remaining[what.replace(f"{place}/", "")] = sorted(path.name for path in place.iterdir())
    if most == 30:
        assert list(remaining) == EVENTS
    assert len(remaining) == min(most, len(EVENTS))
    assert remaining[EVENTS[0]] == ["read"]
    assert remaining[EVENTS[-1]] == ["folder", "read"]
