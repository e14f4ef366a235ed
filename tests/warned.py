"""The warnings of the library that a test has caught."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import TypeVar

from bagbasis import BagbasisWarning

_T = TypeVar("_T")


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


def texts_of(call: Callable[[], _T], words: str = "") -> tuple[_T, list[str]]:
    """Return what a call gives, and its warnings that have these words, a text each."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = call()
    texts = [str(item.message) for item in caught if item.category is BagbasisWarning]
    return result, [text for text in texts if words in text]
