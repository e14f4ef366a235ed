"""Which bags are in a window."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from bagbasis import ParameterError
from bagbasis.operations import Window
from bagbasis.operations.retraining.state import window_start

NOW = datetime(2026, 3, 10, tzinfo=UTC)


@dataclass
class Seen:
    stop: int
    at: str


def seen(*pairs):
    """Rounds as (stop, days ago)."""
    return [Seen(stop, (NOW - timedelta(days=days)).isoformat()) for stop, days in pairs]


@pytest.mark.parametrize(
    ("window", "first", "expected"),
    [
        (Window(), 0, 0),
        (Window(), 7, 7),
        (Window(bags=100), 0, 0),
        (Window(bags=30), 0, 50),
        (Window(bags=30), 60, 60),
        (Window(days=2.5), 0, 30),
        (Window(days=2), 0, 30),
        (Window(days=1.9), 0, 60),
        (Window(days=0.5), 0, 70),
        (Window(days=10), 12, 12),
    ],
)
def test_start(window, first, expected):
    """So many bags, or those that rounds of the last days found; what left does not come back."""
    rounds = seen((10, 4), (30, 3), (60, 2), (70, 1))
    assert window_start(window, rounds, first, 80, NOW) == expected


def test_first_round():
    """Without rounds before, the bags there are have just been found."""
    assert window_start(Window(days=1), [], 0, 80, NOW) == 0
    assert window_start(Window(bags=30), [], 0, 80, NOW) == 50


@pytest.mark.parametrize(
    "wrong", [{"bags": 0}, {"days": 0.0}, {"days": -1}, {"bags": 3, "days": 3}]
)
def test_refused(wrong):
    """No window of nothing, and none of two kinds."""
    with pytest.raises(ParameterError, match=r"window"):
        Window(**wrong)
