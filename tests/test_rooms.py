"""Each room says in its `__init__` what it is for and what it may import."""

from __future__ import annotations

import ast
import re
import tomllib
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
[LAYERS] = [one["layers"] for one in SETTINGS["contracts"] if one["type"] == "layers"]
NAMES = [name for layer in LAYERS for name in re.findall(r"bagbasis\.(\w+)", layer)]
ROOMS = [name for name in NAMES if (ROOT / "pipeline" / name / "__init__.py").exists()]
APART = {"parameters", "neural"}  # whoever has a parameter imports the one, nobody the other
FOLDERS = {
    file.parent.relative_to(ROOT).as_posix()
    for top in ("pipeline", "jobs")
    for file in (ROOT / top).rglob("__init__.py")
}


DOORS = sorted((ROOT / "pipeline").glob("*/__init__.pyi"))


@cache
def imports():
    """The file, the module and the names of each import of the library, its jobs and its tests."""
    return [
        (file, node.module or "", [one.name for one in node.names])
        for top in ("pipeline", "jobs", "tests")
        for file in (ROOT / top).rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.ImportFrom)
    ]


def taken_from(room):
    """Names that modules outside of a room import from its door."""
    inside = ROOT / "pipeline" / room
    return {
        name
        for file, module, names in imports()
        if module.rpartition(".")[2] == room and inside not in file.parents
        for name in names
    }


def docstring(folder):
    return ast.get_docstring(ast.parse((folder / "__init__.py").read_text())) or ""


def test_every_room_is_a_layer():
    folders = {file.parent.name for file in (ROOT / "pipeline").glob("*/__init__.py")}
    assert folders == set(ROOMS)


@pytest.mark.parametrize("room", sorted({*ROOMS} - {"parameters"}))
def test_a_room_says_what_it_imports(room):
    """As the layers of `make lint` have it: the room below, and by it all rooms below that."""
    text = " ".join(docstring(ROOT / "pipeline" / room).split())
    below = [name for name in ROOMS[ROOMS.index(room) + 1 :] if name not in APART]
    said = re.search(r"The room imports ([^.:]*)\.", text)
    assert said is not None
    if not below:
        assert said[1] == "no other room"
    else:
        named = re.findall(r"\w+", said[1].partition(" and the rooms below it")[0])
        assert below[0] in named
        assert {*named} <= {*below, "and"}


@pytest.mark.parametrize("folder", sorted(FOLDERS))
def test_a_folder_says_what_it_is_for(folder):
    """In its first line, a sentence."""
    assert re.match(r"[\w`].{15,}[.)]$", docstring(ROOT / folder).split("\n")[0])


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.parent.name)
def test_a_door_hands_on_what_is_taken(door):
    """By another room, a job or a test, or by people: else a name is the room's own."""
    handed_on = set(re.findall(r"^    (\w+) as \w+,$", door.read_text(), re.MULTILINE))
    people = re.search(r"__all__ = \[(.*?)\]", door.with_suffix(".py").read_text(), re.DOTALL)
    for_people = set(re.findall(r'"(\w+)"', people[1])) if people else set()
    assert handed_on >= for_people
    assert handed_on <= for_people | taken_from(door.parent.name)
