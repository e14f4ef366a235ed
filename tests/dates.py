"""``make test-dates``: tests that draw values or read the clock have one outcome on any date.

The files that use hypothesis, the values of `tests.contract` or the clock run today, across the
end of a leap day and across the turn of a year, each in another time zone, by the command
`faketime` (Debian's package of that name). Both other dates are past ones: files keep the times of
the machine, and new files would be old on a later date. A test whose outcome differs, or that fails
on every date, is named. More arguments go to pytest.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree

TESTS = Path(__file__).parent
# name, date at the start in UTC, time zone; today is as the machine has it
DATES: tuple[tuple[str, datetime | None, str], ...] = (
    ("today", None, "UTC"),
    ("a leap day", datetime(2024, 2, 29, 23, 57, tzinfo=UTC), "Pacific/Auckland"),
    ("the turn of a year", datetime(2025, 12, 31, 23, 57, tzinfo=UTC), "America/St_Johns"),
)
DEPENDS = re.compile(
    r"from hypothesis import|tests\.contract\.values import|\btime\.time\(|datetime\.now|utime\("
)


def main(arguments: Sequence[str]) -> int:
    """Run the tests on each date; return 1 if any fails or has several outcomes."""
    if shutil.which("faketime") is None:
        sys.exit("faketime is missing: apt-get install faketime")
    files = sorted(path for path in TESTS.rglob("test_*.py") if DEPENDS.search(path.read_text()))
    outcomes = {name: outcomes_on(date, zone, files, arguments) for name, date, zone in DATES}
    wrong = list(differences(outcomes))
    print(*wrong or [f"{len(outcomes['today'])} tests have one outcome on all dates"], sep="\n")
    return min(len(wrong), 1)


def outcomes_on(
    date: datetime | None, zone: str, files: Sequence[Path], arguments: Sequence[str]
) -> dict[str, str]:
    """Return what became of each test on a date: "passed", or the kind of its failure."""
    now = datetime.now(UTC)
    date = date or now
    print(f"--- {date:%Y-%m-%d}, {zone}", flush=True)
    offset = f"{(date - now).total_seconds():+.0f}"
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, "outcomes.xml")
        pytest = [sys.executable, "-m", "pytest", f"--junitxml={place}", *arguments]
        subprocess.run(["faketime", "-f", offset, *pytest, *files], env=os.environ | {"TZ": zone})
        return dict(read(place))


def read(place: Path) -> Iterator[tuple[str, str]]:
    """Yield tests and their outcomes from a file in JUnit's format."""
    for case in ElementTree.parse(place).iter("testcase"):  # noqa: S314 - pytest has written it
        kinds = {child.tag for child in case} & {"failure", "error", "skipped"}
        yield f"{case.get('classname')}::{case.get('name')}", " and ".join(kinds) or "passed"


def differences(outcomes: dict[str, dict[str, str]]) -> Iterator[str]:
    """Yield a line for each test that does not pass on all dates alike."""
    for test in sorted(set().union(*outcomes.values())):
        by_name = {name: those.get(test, "not run") for name, those in outcomes.items()}
        if set(by_name.values()) not in ({"passed"}, {"skipped"}):
            yield f"{test}: " + ", ".join(f"{name}: {what}" for name, what in by_name.items())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
