"""``python -m tests.words``: words and names that the project avoids, and what it says instead.

The list is short: a word stands here once no file has it. A line that needs one, as a name of
somebody or a term of the field, is allowed by what stands around the word.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
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
    r"\b[Ll]anes? of\b|\ba lane\b|\bkeepers?\b": "write 'worker', 'checkpoints'",
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

UNREAD = (
    *("tests/models/test_automatic.py", "tests/models/test_fold_errors.py"),
    *("tests/oracles/embedding_entries.py", "tests/oracles/histogram.py"),
)
"""Tests whose local names are still to be read."""

NAMES = {"found", "given", "kept", "left", "one", "said", "told"}
"""Names of variables, parameters and fields that say nothing of what they hold, also in tests."""

OPPOSITES = {"left": {"right", "top"}}
"""Next to one of these, a name says which of two sides it is."""


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


def main() -> int:
    """Print each line with a word or a name of the lists; return 1 if there is any."""
    command = ["git", "ls-files", "--", *FOLDERS]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    complaints = [
        f"{name}:{number}: {remedy}: {line.strip()}"
        for name in names.split()
        if name.endswith((".py", ".md", ".pyi", ".yaml")) and not name.startswith(KEPT)
        for number, line in enumerate((ROOT / name).read_text().splitlines(), start=1)
        for word, remedy in WORDS.items()
        if re.search(word, ALLOWED.sub("", line))
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
        if name.endswith(".py") and not name.startswith(KEPT + UNREAD)
        for line, vague in sorted(set(vague_names((ROOT / name).read_text())))
    ]
    print("\n".join(complaints))
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
