"""The contract of import-linter that a room is entered by its door.

A room is a folder of the library, or of `bagbasis.jobs`. Its door is its ``__init__``: other rooms
import what it hands on, and no module behind it. What everybody stands on has no door.
"""

from __future__ import annotations

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output


class DoorsContract(Contract):
    """No module of another room is imported past the room's door."""

    roots = fields.ListField(subfield=fields.StringField())  # what has rooms
    open_rooms = fields.ListField(subfield=fields.StringField(), required=False)

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        """Collect the imports that go past a door."""
        roots, unlocked = list(self.roots), set(self.open_rooms or ())
        past = [
            (importer, imported)
            for importer in sorted(graph.modules)
            for imported in sorted(graph.find_modules_directly_imported_by(importer))
            if (room := room_of(imported, roots)) is not None
            and imported != room
            and room not in unlocked
            and room_of(importer, roots) != room
        ]
        return ContractCheck(kept=not past, metadata={"past": past})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Name each of them."""
        for importer, imported in check.metadata["past"]:
            output.print_error(f"{importer} imports {imported} past its room's door")


def room_of(module: str, roots: list[str]) -> str | None:
    """Return the room of a module: a folder right below the longest root that it is in."""
    root = max((r for r in roots if module.startswith(f"{r}.")), key=len, default=None)
    if root is None:
        return None
    return ".".join(module.split(".")[: root.count(".") + 2])
