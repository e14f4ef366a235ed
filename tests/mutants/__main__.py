"""``make mutants``: what share of small faults in the library its tests find.

From each package the same number of mutants is drawn by a seed. A mutant meets the tests that reach
its line, those of its module's own files first, then those of its folder, oracles, and the
quickest, for a minute in all; it is killed when one fails. Which tests reach which lines is found
by one run of the tests under coverage, long ones too, which is kept until `--reach` asks for
another. The result goes to docs/mutants.jsonl.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from multiprocessing.connection import wait
from pathlib import Path

import coverage

from .mutations import Mutant, mutants
from .trials import PATIENCE, Trial, is_of_kernels, prepare

ROOT = Path(__file__).parents[2]
PIPELINE, TESTS = ROOT / "pipeline", ROOT / "tests"
KEPT = ROOT / "docs" / "mutants.jsonl"
REACHED = ROOT / ".venv" / "mutants"
PACKAGES = ("core", "data", "embeddings", "models", "densities", "hypotheses", "execution")
SECONDS = 60.0  # of tests a mutant


def main() -> None:
    """Draw mutants, try them, and keep what became of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mutants", type=int, default=300, help="how many, in all packages")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--reach", action="store_true", help="run the tests under coverage again")
    parser.add_argument("--packages", nargs="*", default=PACKAGES, choices=PACKAGES)
    parser.add_argument("--without", help="marks of tests that are not run for --reach")
    options = parser.parse_args()
    if options.reach or not REACHED.exists():
        find_reach(options.without)
    reach = Reach()
    drawn = draw(options.packages, options.mutants, options.seed)
    prepare()
    work = [(mutant, reach.tests(mutant)) for mutant in drawn]
    tests = sorted({test for _, some in work for test in some})
    if Trial(None, ["--collect-only", *tests]).end() != "survived":
        sys.exit("tests are gone or have other names; use --reach")
    ends = dict(try_all(work))
    report(ends, options.seed, keep=tuple(options.packages) == PACKAGES)


def find_reach(without: str | None) -> None:
    """Run the tests of the packages, and keep which lines each executes.

    ``without`` has the marks of tests that are left out; None: those of pyproject.toml.
    """
    REACHED.mkdir(parents=True, exist_ok=True)
    for file in REACHED.iterdir():
        file.unlink()
    folders = [*PACKAGES, "oracles", "contract", "search", "operations", "plotting", "clusters"]
    folders += ["ingest", "jobs/test_config_errors.py"]  # core's messages
    command = [sys.executable, "-m", "pytest", "-p", "tests.mutants.reach", "--reach", REACHED]
    command += ["--numprocesses", "logical", "--dist", "loadfile"]
    command += [] if without is None else ["-m", f"not ({without})"]
    subprocess.run([*command, *(TESTS / name for name in folders)], cwd=ROOT, check=False)
    if not any(REACHED.iterdir()):
        sys.exit("no test ran under coverage")


def draw(packages: Sequence[str], n: int, seed: int) -> list[Mutant]:
    """Return the mutants with the smallest keys, the same number of each package."""
    drawn = []
    for i, package in enumerate(packages):
        paths = sorted((PIPELINE / package).rglob("*.py"))
        possible = [mutant for path in paths for mutant in mutants(path)]
        share = n * (i + 1) // len(packages) - n * i // len(packages)
        drawn += sorted(possible, key=lambda mutant: mutant.rank(seed))[:share]
    return drawn


class Reach:
    """The tests that reach a line, and what they take."""

    def __init__(self) -> None:
        self.times: dict[str, float] = {}
        for file in REACHED.glob("times-*.json"):
            self.times |= json.loads(file.read_text())
        self._lines = []
        for file in REACHED.glob("lines-*"):
            data = coverage.CoverageData(str(file))
            data.read()
            self._lines.append(data)
        self._reached: dict[Path, dict[int, set[str]]] = {}
        self._texts = {path: path.read_text() for path in sorted(PIPELINE.rglob("*.py"))}
        self._of_tests = {path: path.read_text() for path in sorted(TESTS.rglob("test_*.py"))}

    def tests(self, mutant: Mutant) -> list[str]:
        """Return tests that reach a mutant, within the seconds, in the order in which to try."""
        if is_of_kernels(mutant.path):
            names = {mutant.function} - {""} or set(_functions(self._texts[mutant.path]))
            result = self._of_kernels(names)
        else:
            result = self._at(mutant.path, [mutant.line])
        result = result or self._at(mutant.path, None)  # a line that is executed at import
        own, oracles = f"test_{mutant.path.stem}.py", "tests/oracles/"
        # lines that run where a test's module is imported are reached by no test
        more = {test for test in self.times if f"/{own}::" in test}
        near = f"tests/{mutant.path.parent.relative_to(PIPELINE)}/"
        order = sorted(
            result | more,
            key=lambda test: (
                own not in test,
                test not in result,
                not test.startswith(near),
                oracles not in test,
                self.times[test],
                test,
            ),
        )
        seconds, chosen = 0.0, []
        for test in order:
            seconds += self.times[test] + 0.02
            if chosen and seconds > SECONDS:
                break
            chosen.append(test)
        return chosen

    def _at(self, path: Path, lines: Iterable[int] | None) -> set[str]:
        """Return the tests that reach lines of a module; any of its lines with None."""
        if path not in self._reached:
            by_line = self._reached[path] = defaultdict(set)
            for data in self._lines:
                for line, tests in data.contexts_by_lineno(str(path.relative_to(ROOT))).items():
                    by_line[line] |= {test for test in tests if test in self.times}
        by_line = self._reached[path]
        return set().union(*(by_line.get(line, ()) for line in (lines or by_line)))

    def _of_kernels(self, names: set[str]) -> set[str]:
        """Return the tests that reach calls of compiled functions, through others, too."""
        size = 0
        kernels = [path for path in (*self._texts, *TESTS.rglob("*.py")) if is_of_kernels(path)]
        while len(names) > size:
            size = len(names)
            names |= {name for path in kernels for name in _callers(path, names)}
        mention = re.compile(rf"\b({'|'.join(map(re.escape, names))})\b")
        result = set()
        for path, text in self._texts.items():
            if mention.search(text):  # lines of compiled functions have no tests
                lines = [i for i, line in enumerate(text.splitlines(), 1) if mention.search(line)]
                result |= self._at(path, lines)
        for path, text in self._of_tests.items():
            if mention.search(text):
                begin = f"{path.relative_to(ROOT)}::"
                result |= {test for test in self.times if test.startswith(begin)}
        return result


def _functions(text: str) -> dict[str, set[str]]:
    """Return the functions and the constants of a module, with the names and attributes in each."""
    tree = ast.parse(text)
    named = [(node.name, node) for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    named += [  # such as a table of kernels
        (target.id, node.value)
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    ]
    return {
        name: {
            node.id if isinstance(node, ast.Name) else node.attr
            for node in ast.walk(value)
            if isinstance(node, ast.Name | ast.Attribute)
        }
        for name, value in named
    }


def _callers(path: Path, names: set[str]) -> Iterator[str]:
    """Yield the functions and the constants of a module that name one of ``names``."""
    yield from (name for name, inner in _functions(path.read_text()).items() if inner & names)


def try_all(work: Sequence[tuple[Mutant, list[str]]]) -> Iterator[tuple[Mutant, str]]:
    """Yield what becomes of each mutant; as many at once as there are cores."""
    n_cores = len(os.sched_getaffinity(0))
    running: list[Trial] = []
    begun = time.monotonic()
    for i, (mutant, tests) in enumerate([*work, *[(None, [])] * n_cores]):
        if len(running) == n_cores or mutant is None:
            if not running:
                return
            wait([trial.process.sentinel for trial in running], PATIENCE)
            over = next((trial for trial in running if not trial.process.is_alive()), running[0])
            running.remove(over)
            assert over.mutant is not None
            yield over.mutant, over.end(timeout=1)
        if mutant is None:
            continue
        print(f"{i + 1}/{len(work)}, {time.monotonic() - begun:.0f} s", end="\r", flush=True)
        if tests:
            running.append(Trial(mutant, tests))
        else:
            yield mutant, "unreached"


def report(ends: dict[Mutant, str], seed: int, *, keep: bool) -> None:
    """Print the share killed of each package, and the survivors; keep both."""
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    survivors = []
    for mutant, end in ends.items():
        path = mutant.path.relative_to(PIPELINE)
        counts[path.parts[0]][1] += 1
        if end in ("killed", "endless"):
            counts[path.parts[0]][0] += 1
        else:
            survivors.append(f"{path}:{mutant.line} {mutant.function}: {mutant.change} ({end})")
    for package, (killed, n) in counts.items():
        share = killed / n
        error = (share * (1 - share) / n) ** 0.5
        print(f"{package:12} {killed:3} of {n:3} killed, {share:.2f} ± {error:.2f}")
    print("survivors:", *sorted(survivors), sep="\n  ")
    if keep:
        row = {"measured": datetime.now(UTC).date().isoformat(), "seed": seed}
        row |= {"killed": counts, "survivors": sorted(survivors)}
        with KEPT.open("a") as file:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
