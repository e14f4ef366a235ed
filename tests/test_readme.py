"""The README's first example is what people try first."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import numpy as np

README = Path(__file__).parents[1] / "README.md"


def test_first_example_runs(tmp_path, monkeypatch):
    """As it stands, in an empty folder; and what it learns is true."""
    monkeypatch.chdir(tmp_path)
    first = re.search(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    Path("example.py").write_text(first.group(1))
    names = runpy.run_path("example.py")
    model, bags, spread = (names[name] for name in ("model", "bags", "spread"))
    assert np.abs(model.predict(bags) - spread).mean() < 0.1
    assert 50 < model.report_["n_bags_held_out"] < 150
