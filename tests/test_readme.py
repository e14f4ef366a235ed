"""The README is short, and its programs are what people try first."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
MOST_WORDS = 650
MOST_LINES = 8  # of a program, without blank ones


def programs(page):
    """The Python programs of a page."""
    return re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)


def test_is_short_and_begins_with_what_to_type():
    """A tired reader gets to the end of it."""
    text = README.read_text()
    assert len(text.split()) <= MOST_WORDS
    assert text.startswith("# bagbasis\n\n```\nmake demo ")
    assert text.split("\n")[4].startswith("make test ")
    for program in programs(README):
        assert len([line for line in program.split("\n") if line.strip()]) <= MOST_LINES


@pytest.mark.long
def test_programs_run(tmp_path):
    """Both, one after the other as one script, in an empty folder; and what is learnt is true."""
    in_memory, in_a_store = programs(README)
    checks = """
    import numpy as np
    assert np.abs(model.predict(bags) - spread).mean() < 0.1
    assert 50 < model.report_["n_bags_held_out"] < 150
    assert model.report_["data_url"].endswith("train.zarr")
"""
    (tmp_path / "example.py").write_text(in_memory + in_a_store + checks)
    found = subprocess.run(
        [sys.executable, "example.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stdout + found.stderr
    assert "r2" in found.stdout.lower()
    assert "Warning" not in found.stderr


@pytest.mark.long
def test_getting_started_runs(tmp_path, monkeypatch):
    """The first program of the page does, and what it learns is true."""
    monkeypatch.chdir(tmp_path)
    Path("example.py").write_text(programs(ROOT / "docs" / "getting-started.md")[0])
    names = runpy.run_path("example.py")
    model, bags, spread = (names[name] for name in ("model", "bags", "spread"))
    assert np.abs(model.predict(bags) - spread).mean() < 0.1
    assert 50 < model.report_["n_bags_held_out"] < 150
