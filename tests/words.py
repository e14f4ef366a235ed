"""``python -m tests.words``: words that the project does not use, and what it says instead.

The list is short: a word stands here once no file has it. A line that needs one, as a name of
somebody or a term of the field, is allowed by what stands around the word.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("pipeline", "jobs", "configs", "docs", "deploy", "recipe", "tests", "*.md")
KEPT = (
    *("jobs/experiments/", "docs/bench.jsonl", "docs/api/", "docs/experiments/"),
    *("tests/words.py", "tests/kept/"),
)
"""Results of experiments that were kept, and the names that they have."""

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
    r"\b[Hh]alf decades\b|\bthe kernels' own values\b": "write 'two a decade', 'exact kernels'",
    r"\bwhat it holds\b": "name the content",
    r"\b[Ww]alls?\b(?!.clock| time|\"| and CPU)": "write 'edge' for that of a box",
}
ALLOWED = re.compile(r"[Pp]ower[- ]laws?|Law, Yau|\(Law\b|law of large numbers|Newton's law")


def main() -> int:
    """Print each line with a word of the list; return 1 if there is any."""
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
    print("\n".join(complaints))
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
