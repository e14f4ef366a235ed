"""``python -m tests.words``: words and names that the project avoids, and what it says instead.

The list is short: a word stands here once no file has it. A line that needs one, as a name of
somebody or a term of the field, is allowed by what stands around the word.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("pipeline", "jobs", "configs", "docs", "deploy", "recipe", "tests", "*.md")
KEPT = (
    *("jobs/experiments/results/", "docs/bench.jsonl", "docs/api/", "docs/experiments/"),
    *("tests/words.py", "tests/kept/"),
)
"""Results of experiments that were kept, and pages that are made."""

WORDS = {
    r'^ +Of (?!the two sets)|"""Of |^ {8,}What (?!a task holds|is left)[a-z]': (
        "begin a description with the noun that it describes"
    ),
    r"\b[Ll]aws?\b": "write 'distribution' or 'null distribution'",
    r"\bthis room\b|\b[Rr]ooms (import|of ours)\b|\b[Tt]he room imports\b": "write 'package'",
    r"\bnone of ours\b": "write 'from another library' or 'not written by bagbasis'",
    r"\b[Ii]n place of\b": "write 'instead of'",
    r"(?<![Tt]here )\bis no (number|table|array|model|store|text|URL|column|report|network)\b": (
        "write 'is not a'"
    ),
    r"\b(MOST|LEAST)_(?!FREQUENT\b|SQUARES\b|USED\b)[A-Z]": "write MAX_ or MIN_",
    r"\b(a|the) shares? of\b": "write 'fraction'",
    r"\b[Ll]anes?(_|\b)|_lanes?\b|\b_?LANES?\b|_LANES?\b": "write 'worker' or 'columns'",
    r"\bkeepers?\b": "write 'checkpoints'",
    r"\b[Hh]alf decades\b|\bthe kernels' own values\b": "write 'two a decade', 'exact kernels'",
    r"\bwhat it holds\b": "name the content",
    r"\bwhole or not at all\b": "write 'atomically'",
    r"^ +(Such as|Per [a-z]|Scaled to) ": "begin a description with the noun that it describes",
    r"(?<!else )\b[Bb]eside\b(?=[,;.]?$|[,;] (a|and|or|the|which)\b| (?!if |is |else )[\w`*{])": (
        "write 'next to', 'compared with', 'in addition to' or 'besides'"
    ),
    r"\b[Ww]alls?\b(?!.clock| time|\"|`| =| and CPU|, (cpu|leaf|used)|,$|\),)": (
        "write 'edge' for that of a box"
    ),
}
CITED = re.compile(r"\b00[0-4],? (§|eq\.|ch\.|App\.|Alg)|[( ]00[0-4]\)")
"""Numbers of papers, which only experiments cite; elsewhere a paper has its authors' names."""
ALLOWED = re.compile(r"[Pp]ower[- ]laws?|Law, Yau|\(Law\b|law of large numbers|Newton's law")

NAMES = {"found", "given", "kept", "left", "one", "said", "told"}
"""Names of variables, parameters and fields that say nothing of what they hold, also in tests."""

OPPOSITES = {"left": {"right", "top"}}
"""Next to one of these, a name says which of two sides it is."""

MAX_DEEP_IMPORTS = 1058
MAX_PRIVATE_NAMES = 0
"""In tests: names imported from modules below packages, and private names of the library.

Both numbers only fall: tests go in by what packages export, and judge by what calls return.
"""

PROTOCOLS = {"_repr_html_", "_exit", "_replace", "_asdict", "_fields"}
"""Names with an underscore that other libraries document."""


def vague_names(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the name of each vague variable, parameter or field of a module."""
    tree = ast.parse(text)
    inner = (ast.FunctionDef, ast.Lambda, ast.ClassDef)
    for scope in [tree, *(node for node in ast.walk(tree) if isinstance(node, inner))]:
        names = [*_bound(scope)]
        beside = {name for _, name in names}
        for line, name in names:
            if name in NAMES and not beside & OPPOSITES.get(name, set()):
                yield line, name


def _bound(scope: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield what a scope binds, with what inner scopes bind."""
    for node in ast.walk(scope):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.FunctionDef) and node is not scope:
            yield node.lineno, node.name


def exports() -> dict[tuple[str, str], str]:
    """Return the package that exports each name of a module, the outermost of several."""
    places: dict[tuple[str, str], str] = {}
    for folder, package in (("pipeline", "bagbasis"), ("jobs", "bagbasis.jobs")):
        files = sorted((ROOT / folder).rglob("__init__.py*"), key=lambda file: len(file.parts))
        for file in files:
            inner = file.parent.relative_to(ROOT / folder).parts
            name = ".".join((package, *inner))
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.ImportFrom) and node.level == 1 and node.module:
                    for each in node.names:
                        if not each.name.startswith("_"):
                            places.setdefault((f"{name}.{node.module}", each.name), name)
    return places


def is_package(module: str) -> bool:
    """Whether a module of the library is a folder."""
    _, *parts = module.split(".")
    is_job = parts[:1] in (["jobs"], ["configs"])
    return ROOT.joinpath(*([] if is_job else ["pipeline"]), *parts).is_dir()


def imported(nodes: Iterable[ast.AST]) -> Iterator[tuple[int, str, str]]:
    """Yield the line, the module and the name of each import from a module of the library."""
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("bagbasis."):
            module = node.module or ""
            yield from ((node.lineno, module, each.name) for each in node.names)


def private_names(nodes: Sequence[ast.AST]) -> Iterator[tuple[int, str]]:
    """Yield the line of each private name that a module of tests takes from others."""
    defined = {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    defined |= {
        node.attr
        for node in nodes
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
    }
    for node in nodes:
        if isinstance(node, ast.Attribute) and node.attr not in defined | PROTOCOLS:
            is_own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            if re.match("_[a-z]", node.attr) and not is_own:
                yield node.lineno, node.attr
    yield from ((line, name) for line, _, name in imported(nodes) if re.match("_[a-zA-Z]", name))


def complaints_of_tests(names: Iterable[str]) -> Iterator[str]:
    """Yield what is wrong with how tests reach into the library."""
    places, n_deep, n_private = exports(), 0, 0
    for name in names:
        nodes = [*ast.walk(ast.parse((ROOT / name).read_text()))]
        n_private += len([*private_names(nodes)])
        for line, module, imported_name in imported(nodes):
            if place := places.get((module, imported_name)):
                yield f"{name}:{line}: import {imported_name} from {place}"
            n_deep += not is_package(module)
    if n_deep > MAX_DEEP_IMPORTS:
        yield (
            f"tests: {n_deep} imports from modules below packages, {MAX_DEEP_IMPORTS} before: "
            "import names from the packages that export them"
        )
    if n_private > MAX_PRIVATE_NAMES:
        yield (
            f"tests: {n_private} private names of the library, {MAX_PRIVATE_NAMES} before: "
            "judge by what public names return"
        )


def main() -> int:
    """Print each line with a word or a name of the lists; return 1 if there is any."""
    command = ["git", "ls-files", "--", *FOLDERS]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    any_word = re.compile("|".join(WORDS))
    complaints = [
        f"{name}:{number}: {remedy}: {line.strip()}"
        for name in names.split()
        if name.endswith((".py", ".md", ".pyi", ".yaml")) and not name.startswith(KEPT)
        for number, line in enumerate((ROOT / name).read_text().splitlines(), start=1)
        if any_word.search(text := ALLOWED.sub("", line))
        for word, remedy in WORDS.items()
        if re.search(word, text)
    ]
    complaints += [
        f"{name}:{number}: name the paper, as in 'Oliva 2018, §3.2': {line.strip()}"
        for name in names.split()
        if name.startswith("pipeline/") and name.endswith(".py")
        for number, line in enumerate((ROOT / name).read_text().splitlines(), start=1)
        if CITED.search(line)
    ]
    complaints += [
        f"{name}:{line}: {vague!r}: give it the noun of what it holds"
        for name in names.split()
        if name.endswith(".py") and not name.startswith(KEPT)
        for line, vague in sorted(set(vague_names((ROOT / name).read_text())))
    ]
    complaints += complaints_of_tests(
        name for name in names.split() if name.startswith("tests/") and name.endswith(".py")
    )
    print("\n".join(complaints))
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
