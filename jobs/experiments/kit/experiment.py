"""The base of experiments: declared measures, their points, and their pictures."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar, TypeVar

import numpy as np

from ...configs.config import read_yaml
from ...files import plain
from ...terminal import Callback
from .plots import Picture

_Item = TypeVar("_Item")
Params = Mapping[str, Any]
Settings = SimpleNamespace
"""The sizes of a scale, by the keys of its YAML file."""


@dataclass(frozen=True)
class Point:
    """One measurement: its title, which begins the file's name, and all that decides the result.

    A point with the same parameters, of types that JSON knows, is not measured again.
    """

    label: str
    params: Params


@dataclass(frozen=True)
class Result:
    """A point that was measured: numbers by name, and how long it took."""

    point: Point
    values: Mapping[str, Any]
    seconds: float

    @property
    def params(self) -> Params:
        return self.point.params


@dataclass(frozen=True)
class Measure:
    """One kind of measurement, and the points at which it is made: the product of its axes.

    ``name`` is the parameter ``measure`` of its points, "" where an experiment has one alone;
    ``label`` is a format of their parameters. ``run`` has the numbers of a point from these, and
    calls ``progress(done, total)``. What it needs of earlier points it finds in ``out_dir`` or
    makes again: a run that goes on after an interruption does not measure these. ``over`` has the
    values of a parameter, or of several that go together ("n_points d"), ``fixed`` what all share.
    """

    name: str
    run: Callable[[Params, Callback], Mapping[str, Any]]
    label: str
    over: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    fixed: Params = field(default_factory=dict)

    def points(self) -> Iterator[Point]:
        """Yield the product of the axes, the last one fastest."""
        named = {"measure": self.name} if self.name else {}
        for values in product(*self.over.values()):
            params: dict[str, Any] = {**named, **self.fixed}
            for names, value in zip(self.over, values, strict=True):
                several = names.split()
                pairs = zip(several, value if len(several) > 1 else (value,), strict=True)
                params.update(pairs)
            yield Point(self.label.format(**params), params)


@dataclass(frozen=True)
class ResultTable:
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]


class Experiment(ABC):
    """One of the papers' experiments at one scale, "small" or "paper", with its settings from YAML.

    ``source`` is where the paper has it. One that is ``alone`` measures this machine, so that it
    must run without a cluster. ``out_dir`` is for the pictures, and stores and models in folders.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    source: ClassVar[str] = "Not in the papers"
    pictures: ClassVar[Sequence[Picture]] = ()
    alone: ClassVar[bool] = False

    def __init__(self, scale: str, seed: int, out_dir: Path) -> None:
        self.scale = scale
        self.settings = Settings(**scales(self.name)[scale])
        self.seed = seed
        self.out_dir = out_dir

    @property
    def size(self) -> str:
        """The settings of the scale, in a line."""
        return "; ".join(f"{name}: {value}" for name, value in vars(self.settings).items())

    def picked(self, names: str) -> dict[str, Any]:
        return {name: getattr(self.settings, name) for name in names.split()}

    def shared(self, *without: str) -> dict[str, Any]:
        """Return the seed and all settings but some, as parameters of points."""
        names = " ".join(name for name in vars(self.settings) if name not in without)
        return {"seed": self.seed, **self.picked(names)}

    @abstractmethod
    def measures(self) -> Sequence[Measure]:
        """Return what is measured, in order; a point may use files that one before it left."""

    def points(self) -> list[tuple[Point, Measure]]:
        return [(point, measure) for measure in self.measures() for point in measure.points()]

    def tables(self, results: Sequence[Result]) -> Sequence[ResultTable]:
        """Return the tables of the report; none: a summary of each measure."""
        return ()

    def rng(self, *key: int) -> np.random.Generator:
        """Return the generator of the seed and a key."""
        return np.random.default_rng([self.seed, *key])


def counted(items: Collection[_Item], progress: Callback) -> Iterator[_Item]:
    """Yield items, and report how many are done."""
    for done, item in enumerate(items, 1):
        yield item
        progress(done, len(items))


def scales(name: str) -> dict[str, Any]:
    return read_yaml(Path(str(files("bagbasis"))) / "configs" / "experiments" / f"{name}.yaml")


def short_name(values: Params) -> str:
    """Return a short name of parameters: equal for equal values, whatever their order."""
    text = json.dumps(plain(values), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]
