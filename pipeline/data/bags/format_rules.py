"""Declarations of how each reader treats the attributes of a file format."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from ...core.errors import DataError

logger = logging.getLogger(__name__)

_HEADS = {
    "honoured": "what is done",
    "refused": "what to do",
    "warned": "what to do",
    "ignored": "why",
}


@dataclass(frozen=True, eq=False)
class FormatRules:
    """Treatment of the attributes of a file format that change or qualify values.

    A reader takes its refusals and warnings from these rules. The page "What is read from each
    format" is made from them too, so that both agree.

    Parameters
    ----------
    name : str
        Name of the format, as in the documentation.
    calls : tuple of str
        Public functions that read the format.
    honoured : mapping from attribute to str
        Treatment of each attribute that is honoured.
    refused : mapping from attribute to str
        Advice for each attribute whose values are refused.
    warned : mapping from attribute to str
        Text of the logged warning for each attribute that has no effect.
    ignored : mapping from attribute to str
        Reason why each further attribute has no effect.
    """

    ALL: ClassVar[dict[str, FormatRules]] = {}

    name: str
    calls: tuple[str, ...]
    honoured: Mapping[str, str]
    refused: Mapping[str, str] = field(default_factory=dict)
    warned: Mapping[str, str] = field(default_factory=dict)
    ignored: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Add the rules to those of all formats."""
        self.ALL[self.name] = self

    def section(self) -> str:
        """Return the part of the page "What is read from each format" that states the rules."""
        lines = ["Read by " + ", ".join(f"`{call}`" for call in self.calls) + "."]
        for kind, head in _HEADS.items():
            if rows := getattr(self, kind):
                lines += ["", f"| {kind} | {head} |", "|---|---|"]
                lines += [f"| {name} | {text} |".replace("$", r"\$") for name, text in rows.items()]
        return "\n".join(lines)

    def refusal(self, attribute: str, place: str, problem: str) -> DataError:
        """Return the error for an attribute that is refused: place, problem, what to do."""
        return DataError(f"{place}: {problem}; {self.refused[attribute]}")

    def warn(self, attribute: str, place: str, problem: str) -> None:
        """Log that an attribute has no effect."""
        logger.warning("%s: %s; %s", place, problem, self.warned[attribute])
