"""Code lines of the library, the jobs and the tests: ``python tests/count_lines.py [FOLDER ...]``.

A line counts if it has code: docstrings, comments, blank lines and imports are left out. A folder
is counted as a whole, and each of its packages.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("pipeline", "jobs", "tests")
NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
    tokenize.ENCODING,
}


def code_lines(text: str) -> int:
    """Return how many lines of a module's text have code."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines.difference(_left_out(ast.parse(text))))


def _left_out(tree: ast.Module) -> Iterator[int]:
    """Yield the lines of imports and docstrings."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from range(node.lineno, (node.end_lineno or node.lineno) + 1)
        elif isinstance(node, documented) and ast.get_docstring(node) is not None:
            text = node.body[0]
            yield from range(text.lineno, (text.end_lineno or text.lineno) + 1)


def count(folder: Path) -> Counter[str]:
    """Return the code lines of each package of a folder; loose modules are in ""."""
    result: Counter[str] = Counter()
    for path in sorted(folder.rglob("*.py")):
        inside = path.relative_to(folder).parts
        result[inside[0] if len(inside) > 1 else ""] += code_lines(path.read_text())
    return result


def main(folders: list[str]) -> None:
    """Print the counts of some folders."""
    for name in folders or FOLDERS:
        packages = count(ROOT / name)
        print(f"{name}: {packages.total():,}")
        for package, lines in sorted(packages.items(), key=lambda pair: -pair[1]):
            print(f"  {package or '(modules)'}: {lines:,}")


if __name__ == "__main__":
    main(sys.argv[1:])
