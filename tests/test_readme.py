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

from bagbasis.jobs.experiments.kit.runner import read_report
from bagbasis.jobs.experiments.results import RESULTS
from bagbasis.models import stacking

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
MAX_WORDS = 800
MAX_LINES = 20  # of a program, without blank ones
EMBEDDINGS_METHOD, EMBEDDINGS_ERROR = 1, 2  # columns of the kept table of `embeddings`


def programs(page):
    """The Python programs of a page."""
    return re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)


def _words(text):
    """What was printed, without numbers, which differ a little between processors."""
    return re.sub(r"-?\d+(\.\d*)?(e-?\d+)?", "#", text).split()


def test_is_short_and_begins_with_what_to_type():
    """A tired reader gets to the end of it; the commands follow the definition of a bag."""
    text = README.read_text()
    assert len(text.split()) <= MAX_WORDS
    definition, commands, *_ = text.split("```")
    assert definition.startswith("# bagbasis\n\n**bagbasis learns from bags: sets of points")
    assert [line.split(" #")[0].strip() for line in commands.strip().split("\n")] == [
        "make demo",
        "make test",
    ]
    for program in programs(README):
        assert len([line for line in program.split("\n") if line.strip()]) <= MAX_LINES


@pytest.mark.parametrize("page", [README, ROOT / "docs" / "index.md"])
def test_says_what_it_is_and_when_not_to_use_it(page):
    """In the words that people search for."""
    text = " ".join(page.read_text().split())
    for name in (
        "distribution regression",
        "learning on distributions",
        "set learning",
        "multiple-instance learning",
        "kernel mean embedding",
        "Use it if",
        "Use something else if",
    ):
        assert name in text, name


def _comparisons():
    """The names of the peers in the comparison, and on how many sets the default of bagbasis has
    the smaller, the same and the larger error in the kept results."""
    [real, *_] = read_report(RESULTS / "real-bags")[0]["tables"]
    column = real["columns"].index
    peers = {
        "aggregates and boosted trees": "boosted trees",
        "aggregates and a random forest": "forest",
        "aggregates and extra trees": "extra trees",
        "mean pooling and a linear model": "mean pooling",
        "MILES, multiple-instance (classes only)": "MILES",
    }
    pairs = {
        label: [(row[column("default")], row[column(peer)]) for row in real["rows"]]
        for label, peer in peers.items()
    }
    [embeddings, *_] = read_report(RESULTS / "embeddings")[0]["tables"]
    errors = {
        (row[0], str(row[EMBEDDINGS_METHOD]).split(":")[0]): row[EMBEDDINGS_ERROR]
        for row in embeddings["rows"]
    }
    pairs["DeepSets"] = [
        (errors[name, "auto"], errors[name, "deep sets"]) for name in {name for name, _ in errors}
    ]
    for label, both in pairs.items():
        known = [(ours, other) for ours, other in both if isinstance(other, float)]
        yield (
            label,
            sum(ours < other for ours, other in known),
            sum(ours == other for ours, other in known),
            sum(ours > other for ours, other in known),
        )


@pytest.mark.parametrize("page", [README, ROOT / "docs" / "index.md"])
def test_comparisons_are_the_kept_ones(page):
    """Counts of sets, and where the default stands compared with the best peer of each."""
    text = page.read_text()
    for label, *counts in _comparisons():
        shown = re.search(rf"^\| {re.escape(label)}.*\| (\d+) \| (\d+) \| (\d+) \|$", text, re.M)
        assert shown is not None, label
        assert [int(count) for count in shown.groups()] == counts, label
    table = read_report(RESULTS / "real-bags")[0]["tables"][1]
    rows = [dict(zip(table["columns"], row, strict=True)) for row in table["rows"]]
    rows = [row for row in rows if row["method"] == "default"]
    n_sets, ahead, level, behind = (
        sum(int(row[name]) for row in rows)
        for name in ("sets", "ahead", "within 1 s.e.", "within 2 s.e.")
    )
    words = " ".join(text.split())
    assert f"default is ahead on {ahead} of {n_sets}, within one standard error on {level}" in words
    assert f"and more than two behind on {n_sets - behind}." in words


@pytest.mark.long
def test_programs_run(tmp_path):
    """Both, one after the other as one script, in an empty folder; and what is learnt is true."""
    in_memory, in_a_store = programs(README)
    checks = """
    import numpy as np
    assert np.abs(model.predict(bags) - spread).mean() < 0.1
    assert pooled.score(means[800:], spread[800:]) < 0.05
    assert 50 < model.report_["n_bags_held_out"] < 150
    assert model.report_["data_url"].endswith("train.zarr")
"""
    (tmp_path / "example.py").write_text(in_memory + in_a_store + checks)
    result = subprocess.run(
        [sys.executable, "example.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert "r2" in result.stdout.lower()
    [printed] = re.findall(r"```text\n(.*?)```", README.read_text(), re.DOTALL)
    assert _words(result.stdout)[: len(_words(printed))] == _words(printed)
    assert "Warning" not in result.stderr


@pytest.mark.long
def test_getting_started_runs(tmp_path, monkeypatch):
    """The first program of the page does, and what it learns is true."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(stacking, "N_RANDOMISED", 20)  # the README's program has as many as users
    Path("example.py").write_text(programs(ROOT / "docs" / "getting-started.md")[0])
    names = runpy.run_path("example.py")
    model, bags, spread = (names[name] for name in ("model", "bags", "spread"))
    assert np.abs(model.predict(bags) - spread).mean() < 0.1
    assert 50 < model.report_["n_bags_held_out"] < 150
