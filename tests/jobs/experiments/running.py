"""Running an experiment at small scale, once for the tests of a module."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bagbasis.jobs.experiments.experiment import Point, Result
from tests.jobs.running import done, settings


def small_run(name: str, out_dir: Path, **values: Any) -> Path:
    """What the command leaves behind at small scale, with few pixels."""
    with pytest.MonkeyPatch.context() as coarse:
        coarse.setattr("bagbasis.jobs.pictures.evaluation.DOTS_PER_INCH", 60)
        done("experiment", name, *settings(out_dir=out_dir, **values))
    return out_dir


def results_of(out_dir: Path) -> tuple[dict[str, Any], list[Result]]:
    """The report, and its points."""
    report = json.loads((out_dir / "result.json").read_text())
    points = [
        Result(Point(p["label"], p["params"]), p["values"], p["seconds"]) for p in report["points"]
    ]
    return report, points
