"""Lists of public names: ``python -m tests.stubs`` adds the components that are registered.

Each public package has one list, its stub (``__init__.pyi``), from which names are imported when
they are first used. A component is public where its kind is.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from bagbasis.embeddings import EMBEDDINGS, RANDOM_FEATURES
from bagbasis.hypotheses import FIT, INDEPENDENCE, TWO_SAMPLE
from bagbasis.ingest.registry import FORMATS

LIBRARY = Path(__file__).parents[1] / "pipeline"
Names = dict[str, set[str]]


def components() -> Iterator[tuple[str, str, str]]:
    """Yield package, module and name of what is registered; "" is the top level."""
    for registry in (EMBEDDINGS, RANDOM_FEATURES):
        for kind in registry.own.values():
            for package in ("", "embeddings"):
                yield package, kind.__module__, kind.__name__
    for registry in (TWO_SAMPLE, INDEPENDENCE, FIT):
        for kind in registry.own.values():
            yield "hypotheses", kind.__module__, kind.__name__
    for kind in FORMATS.own.values():
        for name in kind.rules.calls:
            if hasattr(sys.modules[kind.__module__], name):
                yield "ingest", kind.__module__, name


def listed(package: str) -> Names:
    """Return the names that a stub lists, by their module, written from the package."""
    result: Names = {}
    for node in ast.parse(stub_of(package).read_text()).body:
        if isinstance(node, ast.ImportFrom):
            result.setdefault(f".{node.module}", set()).update(item.name for item in node.names)
    return result


def missing() -> Mapping[str, Names]:
    """Return the components that a stub lacks, by package and module."""
    result: dict[str, Names] = {}
    for package, module, name in components():
        known = set().union(*listed(package).values())
        if name not in known:
            place = module.removeprefix(f"bagbasis.{package}".rstrip("."))
            result.setdefault(package, {}).setdefault(place, set()).add(name)
    return result


def stub_of(package: str) -> Path:
    """Return the list of a package's public names."""
    return LIBRARY / package / "__init__.pyi"


def main() -> None:
    """Add what is missing, in the order that ruff has imports in."""
    for package, modules in missing().items():
        lines = [
            f"from {module} import (\n"
            + "".join(f"    {n} as {n},\n" for n in sorted(names))
            + ")\n"
            for module, names in modules.items()
        ]
        stub = stub_of(package)
        stub.write_text("".join(lines) + stub.read_text())
        subprocess.run(["ruff", "check", "--quiet", "--select", "I", "--fix", stub], check=True)
        subprocess.run(["ruff", "format", "--quiet", stub], check=True)


if __name__ == "__main__":
    main()
