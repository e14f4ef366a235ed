"""Running jobs as people do, and looking at what they leave behind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from click.testing import CliRunner, Result
from matplotlib.image import imread

from bagbasis.jobs.cli import cli
from bagbasis.jobs.configs.config import load_config
from bagbasis.jobs.shell import JOBS, import_job

__all__ = [
    "CONFIGS",
    "JOBS",
    "assert_picture",
    "bags",
    "cli",
    "done",
    "import_job",
    "load_config",
    "refused",
    "settings",
]

CONFIGS = Path(__file__).parents[2] / "configs"


def bags(*args: Any) -> Result:
    """``bags`` with these arguments, in this process."""
    return CliRunner().invoke(cli, [str(arg) for arg in args], prog_name="bags")


def settings(**values: Any) -> list[str]:
    """``--set`` options; ``__`` in a name is a dot."""
    pairs = [f"{key.replace('__', '.')}={value}" for key, value in values.items()]
    return [part for pair in pairs for part in ("--set", pair)]


def done(*args: Any) -> str:
    """Run a job that has to succeed; what it printed on stdout."""
    result = bags(*args)
    assert result.exit_code == 0, result.output
    return result.stdout


def refused(exit_code: int, *args: Any) -> str:
    """Run a job that has to fail with this code and one line on stderr; the line."""
    result = bags(*args)
    assert result.exit_code == exit_code, result.output
    # what is said during the work: that a kernel is new, what a cluster has
    beside = ("compiling kernels (once)", "cluster: workers: ")
    lines = [
        item for item in result.stderr.splitlines() if not any(text in item for text in beside)
    ]
    assert len(lines) == 1, result.stderr
    if "--json" in args:
        assert json.loads(result.stdout)["error"]["message"] == lines[0].removeprefix("bags: ")
    else:
        assert result.stdout == ""
    return lines[0]


def assert_picture(path: Path) -> None:
    """A PNG of a sensible size that is not blank."""
    assert path.read_bytes().startswith(b"\x89PNG")
    pixels = imread(path)[..., :3]
    assert min(pixels.shape[:2]) > 200
    assert len(np.unique((pixels * 255).astype(int) @ (2**16, 2**8, 1))) > 20  # colours
    assert (pixels < 0.9).any(axis=-1).mean() > 0.01
