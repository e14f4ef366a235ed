"""The warnings of the library that a test has caught."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from bagbasis import BagbasisWarning


class Warned:
    """What was warned of so far, in words."""

    def __init__(self, actual: Sequence[warnings.WarningMessage]) -> None:
        self._found, self._seen = actual, 0

    @property
    def text(self) -> str:
        """The messages since the last `clear`, a line each."""
        new = self._found[self._seen :]
        return "\n".join(str(item.message) for item in new if item.category is BagbasisWarning)

    def clear(self) -> None:
        """Forget what was warned of."""
        self._seen = len(self._found)
