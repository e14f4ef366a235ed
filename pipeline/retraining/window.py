"""Which bags of a growing store a model is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from ..errors import ParameterError


class Seen(Protocol):
    """A round that saw the bags before ``stop`` first at the time ``at``, ISO 8601."""

    @property
    def stop(self) -> int: ...
    @property
    def at(self) -> str: ...


@dataclass(frozen=True)
class Window:
    """The newest bags: so many, or those of so many days; all of them when neither is given.

    A bag's day is that of the round that found it first, so bags leave a window of days by the
    round they came with, and only when there is a new round.

    Parameters
    ----------
    bags : int ≥ 1, optional
        So many bags, labelled or not, held out or not.
    days : float > 0, optional
        The bags that a round of so many days found first.
    """

    bags: int | None = None
    days: float | None = None

    def __post_init__(self) -> None:
        if self.bags is not None and self.days is not None:
            raise ParameterError("a window has so many bags or so many days, not both")
        if self.bags is not None and self.bags < 1:
            raise ParameterError(f"bags of the window: {self.bags!r}; expected an integer ≥ 1")
        if self.days is not None and not self.days > 0:
            raise ParameterError(f"days of the window: {self.days!r}; expected a number > 0")

    def start(self, rounds: Sequence[Seen], first: int, stop: int, now: datetime) -> int:
        """The first bag of the window that ends at ``stop``.

        Parameters
        ----------
        rounds : sequence
            The rounds before, oldest first.
        first : int
            The first bag of the window before: bags that have left do not come back.
        """
        if self.bags is not None:
            return max(first, stop - self.bags)
        if self.days is None:
            return first
        oldest = now - timedelta(days=self.days)
        gone = [seen.stop for seen in rounds if datetime.fromisoformat(seen.at) < oldest]
        return max(first, *gone) if gone else first
