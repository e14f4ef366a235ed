"""Which tests reach which lines: a plugin of pytest that runs them under coverage.

``python -m pytest -p tests.mutants.reach --reach FOLDER`` leaves there, for each process, the lines
with the tests that executed them, and the seconds of each test.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import coverage
import pytest

ROOT = Path(__file__).parents[2]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the folder's option."""
    parser.addoption("--reach", type=Path, help="folder for lines and the tests that reach them")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Watch lines from here on; with several processes, in those that run tests."""
    if hasattr(config, "workerinput") or not config.getoption("numprocesses", None):
        config.pluginmanager.register(_Watch(config.getoption("reach")), "watch of lines")


class _Watch:
    def __init__(self, folder: Path) -> None:
        self.times: dict[str, float] = {}
        self.file = folder / f"times-{os.getpid()}.json"
        data = str(folder / f"lines-{os.getpid()}")
        self.coverage = coverage.Coverage(data, source=[str(ROOT / "pipeline")], config_file=False)
        self.coverage.set_option("run:relative_files", True)
        self.coverage.start()

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.coverage.switch_context(item.nodeid)
        begun = time.monotonic()
        yield
        self.times[item.nodeid] = time.monotonic() - begun
        self.coverage.switch_context("")

    def pytest_sessionfinish(self) -> None:
        self.coverage.stop()
        self.coverage.save()
        self.file.write_text(json.dumps(self.times))
