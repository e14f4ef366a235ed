"""What a tune has found so far, in a JSON file that a killed tune goes on from."""

from __future__ import annotations

import json
import os
import uuid
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..errors import StoreError
from .candidates import Candidate
from .order import Rung

FORMAT_VERSION = 1


@dataclass(frozen=True)
class Score:
    """A candidate on the bags of one rung.

    Attributes
    ----------
    error : float
        Mean squared error on the bags held out over the targets' variance there (the mean over
        targets or classes; of densities the squared L2 distances of both), of the best penalty.
    n_bags, n_train, n_held_out : int
        Of the rung, and the labelled ones that were fitted and held out.
    alpha : float
        The best penalty; ``alphas`` and ``errors`` are the whole path.
    seconds : float
    """

    error: float
    n_bags: int
    n_train: int
    n_held_out: int
    alpha: float
    alphas: tuple[float, ...]
    errors: tuple[float, ...]
    seconds: float


@dataclass(frozen=True)
class Tuning:
    """What `tune` found.

    Attributes
    ----------
    candidates : list of Candidate
    rungs : list of Rung
    scores : list of dict
        Of each rung, the `Score` of each candidate compared there, by its position.
    winner : int
        Position of the winning candidate.
    model : fitted estimator
        The winner, fitted to all bags.
    """

    candidates: list[Candidate]
    rungs: list[Rung]
    scores: list[dict[int, Score]]
    winner: int
    model: Any


class Records:
    """Scores by key, every new one written at once.

    Parameters
    ----------
    path : path or None
        A local file; None keeps nothing.
    identity : str
        Of the data; scores of other data are dropped.

    Raises
    ------
    StoreError
        A file that holds something else, or can not be written.
    """

    def __init__(self, path: str | os.PathLike[str] | None, identity: str) -> None:
        self._path = None if path is None else Path(path)
        self._identity = identity
        self._scores = self._load()

    def get(self, key: str) -> Score | None:
        return self._scores.get(key)

    def put(self, key: str, score: Score) -> None:
        self._scores[key] = score
        if self._path is not None:
            self._write(self._path)

    def _load(self) -> dict[str, Score]:
        if self._path is None or not self._path.exists():
            return {}
        try:
            values = json.loads(self._path.read_text(encoding="utf-8"))
            if values["format_version"] != FORMAT_VERSION or values["identity"] != self._identity:
                return {}
            return {
                key: Score(**{**score, **{k: tuple(score[k]) for k in ("alphas", "errors")}})
                for key, score in values["scores"].items()
            }
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise StoreError(
                f"{self._path}: not the state of a tune ({type(error).__name__}: {error}); delete "
                "it to start over"
            ) from error

    def _write(self, path: Path) -> None:
        values = {
            "format_version": FORMAT_VERSION,
            "identity": self._identity,
            "scores": {key: asdict(score) for key, score in self._scores.items()},
        }
        partial = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            partial.write_text(json.dumps(values, indent=1) + "\n", encoding="utf-8")
            os.replace(partial, path)
        except OSError as error:
            raise StoreError(f"{path}: can not be written ({error.strerror or error})") from error
        finally:
            partial.unlink(missing_ok=True)
