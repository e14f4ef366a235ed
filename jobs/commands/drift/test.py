"""``bags drift test``: whether new rows or bags are still like a reference that was kept."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from ...cluster import running_on
from ...configs import ReportConfig
from ...terminal import Terminal
from .common import WatchedConfig, read_watched

DRIFT = 3
EXIT_CODES = {
    0: "no drift was found",
    1: "something went wrong",
    2: "a wrong config",
    DRIFT: "a drift was found: the p-value is at most the detector's alpha",
}


class Config(ReportConfig, WatchedConfig):
    """See ``configs/drift-test.yaml``."""

    alpha: float | None = Field(default=None, description="null: that of the detector")
    picture: str | None = Field(
        default=None, description="where to draw the scales of the difference; null: nowhere"
    )


def run(config: Config, console: Terminal) -> dict[str, Any]:
    """Test; returns the report."""
    from bagbasis.operations import DriftDetector

    detector = DriftDetector.load(config.detector_url)
    if config.alpha is not None:
        detector.set_params(alpha=config.alpha)
    data, store_url = read_watched(config)
    with running_on(config.cluster, store_url):
        found = detector.test(data)
    is_drift = found.p_value <= detector.alpha
    shown = {
        "drift": "yes" if is_drift else "no",
        "p-value": found.p_value,
        "alpha": detector.alpha,
        "distance": found.statistic,
        "effect": found.effect,
        "largest weight": found.details["largest_weight"],
        **{name: n for name, n in found.n.items()},
    }
    console.values("Drift" if is_drift else "No drift", shown)
    report = {**found.to_dict(), "is_drift": bool(is_drift), "alpha": detector.alpha}
    if config.picture is not None:
        from ...pictures import draw_scales

        report["pictures"] = [str(draw_scales(config.picture, found))]
    return report


def exit_code(report: dict[str, Any]) -> int:
    """Of a call that ended well."""
    return DRIFT if report["is_drift"] else 0
