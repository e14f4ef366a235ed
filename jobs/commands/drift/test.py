"""``bags drift test``: whether new rows or bags are still like a reference that was kept."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from bagbasis.core import None_
from bagbasis.operations import DriftDetector

from ...cluster import running_on
from ...configs.config import ReportConfig
from ...configs.sections import parameter_of, with_parameters
from ...terminal import Terminal
from .common import WatchedConfig, read_watched

DRIFT = 3
EXIT_CODES = {
    0: "no drift was found",
    1: "an error",
    2: "a wrong config",
    DRIFT: "a drift was found: the p-value is at most the detector's level",
}


_LEVEL = parameter_of(DriftDetector, "level")


@with_parameters(
    {
        "level": replace(
            _LEVEL,
            default=None,
            accepts=_LEVEL.accepts and _LEVEL.accepts | None_,
            text=f"{_LEVEL.summary}; null: that of the detector",
        )
    }
)
class Config(ReportConfig, WatchedConfig):
    """Keys of ``configs/drift-test.yaml``."""

    RENAMED_OF: ClassVar[str] = "bags drift test"

    if TYPE_CHECKING:
        level: float | None

    picture: str | None = Field(
        default=None, description="where to draw the scales of the difference; null: nowhere"
    )


def run(config: Config, console: Terminal) -> dict[str, Any]:
    """Test; returns the report."""
    from ...conclusions import lines_of_test

    detector = DriftDetector.load(config.detector_url)
    if config.level is not None:
        detector.set_params(level=config.level)
    data, store_url = read_watched(config)
    with running_on(config.cluster, store_url):
        result = detector.test(data)
    is_drift = result.p_value <= detector.level
    for line in lines_of_test(result, detector.level, config.report is not None):
        console.line(line)
    shown = {
        "drift": "yes" if is_drift else "no",
        "p-value": result.p_value,
        "level": detector.level,
        "distance": result.statistic,
        "effect": result.effect,
        "largest weight": result.details["largest_weight"],
        **{name: n for name, n in result.n.items()},
    }
    console.details.values("Drift" if is_drift else "No drift", shown)
    report = {**result.to_dict(), "is_drift": bool(is_drift), "level": detector.level}
    if config.picture is not None:
        from ...pictures.scales import draw_scales

        report["pictures"] = [str(draw_scales(config.picture, result, detector.level))]
    if config.report is not None:
        from ...pictures.hypothesis_part import hypothesis_part

        header = {"detector": config.detector_url, "data": config.data_url}
        console.parts.append(replace(hypothesis_part(result, detector.level), header=header))
    return report


def exit_code(report: dict[str, Any]) -> int:
    """Return the exit code of a call that ended well."""
    return DRIFT if report["is_drift"] else 0
