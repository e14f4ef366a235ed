"""What an experiment is: points that are measured one by one, then tables and pictures of all."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from ..files import plain
from ..terminal import Callback

S = TypeVar("S")


@dataclass(frozen=True)
class Point:
    """One measurement.

    Attributes
    ----------
    label : str
        What people see, and the beginning of the file's name: letters, digits, spaces, dashes.
    params : mapping
        Everything that decides the result, in types JSON knows: a point with the same parameters
        is not measured again.
    """

    label: str
    params: Mapping[str, Any]


@dataclass(frozen=True)
class Result:
    """A point that was measured: numbers by name, and how long it took."""

    point: Point
    values: Mapping[str, Any]
    seconds: float


def measured(results: Sequence[Result], measure: str) -> list[Result]:
    """Those of one measure."""
    return [r for r in results if r.point.params["measure"] == measure]


@dataclass(frozen=True)
class Table:
    """A table of the report, with remarks that stand below it."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    remarks: Sequence[str] = ()


class Experiment(ABC, Generic[S]):
    """One of the papers' experiments at one scale.

    Attributes
    ----------
    name, title, source : str
        As in the registry; a heading; where the paper has it.
    scales : mapping
        The settings of each scale.
    scale : {"small", "paper"}
    settings
        Those of the scale.
    seed : int
        Of everything that is drawn.
    out_dir : Path
        For stores and models in folders of its own, and for the pictures.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    source: ClassVar[str]
    scales: ClassVar[Mapping[str, Any]]
    settings: S

    def __init__(self, scale: str, seed: int, out_dir: Path) -> None:
        self.scale = scale
        self.settings = self.scales[scale]
        self.seed = seed
        self.out_dir = out_dir

    @property
    @abstractmethod
    def size(self) -> str:
        """How large this scale is beside the paper's, in a sentence."""

    @abstractmethod
    def points(self) -> list[Point]:
        """What is measured, in order; a point may use files that one before it left."""

    @abstractmethod
    def measure(self, point: Point, progress: Callback) -> dict[str, Any]:
        """The numbers of a point.

        Whatever it needs of earlier points it finds in `out_dir`, or makes again: a run that goes
        on after an interruption does not measure these.
        """

    @abstractmethod
    def tables(self, results: Sequence[Result]) -> list[Table]:
        """The tables of all points, with the paper's numbers beside ours."""

    @abstractmethod
    def draw(self, results: Sequence[Result]) -> list[Path]:
        """Write the pictures into `out_dir`."""


def digest(values: Mapping[str, Any]) -> str:
    """A short name of parameters: equal for equal values, whatever their order."""
    text = json.dumps(plain(values), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]
