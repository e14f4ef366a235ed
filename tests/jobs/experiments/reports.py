"""Reading what an experiment's command left behind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from jobs.experiments.experiment import Point, Result


def results_of(out_dir: Path) -> tuple[dict[str, Any], list[Result]]:
    """The report, and its points."""
    report = json.loads((out_dir / "result.json").read_text())
    points = [
        Result(Point(p["label"], p["params"]), p["values"], p["seconds"]) for p in report["points"]
    ]
    return report, points
