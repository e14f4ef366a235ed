"""Scores of a search, and their JSON file, from which an interrupted search continues."""

from __future__ import annotations

import os
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

from ...core.errors import plural
from ...core.saved import Format, Saved, read_saved
from ...data.storage.files import read_json, write_json
from ...embeddings.base import Embedding
from ..fit_summary import FitSummary
from ..verdict import targets_in_words, verdict_of
from .candidates import Candidate
from .order import Rung

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TUNE_FORMAT = Format("state of a tune")


@dataclass(frozen=True, kw_only=True)
class Score(Saved):
    """Score of one candidate on the bags of one rung.

    Attributes
    ----------
    error : float
        Error of the best penalty: the mean squared error on the held-out bags, divided by the
        variance of the targets there, averaged over targets or classes. For densities, squared L2
        distances replace squared errors.
    n_bags, n_train, n_held_out : int
        Number of bags of the rung, and of labelled bags that were fitted and held out.
    alpha : float
        The best penalty; ``alphas`` and ``errors`` are the whole path.
    seconds : float
        Duration of the comparison.
    relative_spread : float
        Ratio of standard error to error, for normal errors and independent bags.

    See Also
    --------
    Tuning : Result of `tune`.
    Candidate : A compared model.
    Rung : A stage of the search.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(0.5, 2.0, 80)
    >>> X = [rng.normal(0, s, (30, 2)) for s in y]
    >>> from bagbasis import DoubleBasisRegressor, MomentsEmbedding, tune
    >>> from bagbasis.models import Search
    >>> search = Search([MomentsEmbedding()], heads=['ridge'])
    >>> scores = tune(DoubleBasisRegressor(), X, y, search=search).scores  # of each rung
    >>> scores[-1][0].error < 0.5
    True
    """

    error: float
    n_bags: int
    n_train: int
    n_held_out: int
    alpha: float
    alphas: tuple[float, ...]
    errors: tuple[float, ...]
    seconds: float

    @property
    def relative_spread(self) -> float:
        """Ratio of standard error to error, for normal errors and independent bags."""
        return float((2 / self.n_held_out) ** 0.5)


@dataclass(frozen=True)
class Lead:
    """Paired difference in score between the winner and a candidate, on held-out bags.

    Attributes
    ----------
    candidate : int
        Position of the candidate.
    gap : float
        Error of the candidate minus the error of the winner.
    standard_error : float
        Standard error of the gap, over bags, or over the groups of ``holdout``.

    See Also
    --------
    Tuning : Result of `tune`.
    Score : Score of a candidate on one rung.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(0.5, 2.0, 80)
    >>> X = [rng.normal(0, s, (30, 2)) for s in y]
    >>> from bagbasis import DoubleBasisRegressor, MomentsEmbedding, tune
    >>> from bagbasis.models import Search
    >>> search = Search([MomentsEmbedding()], heads=['ridge'])
    >>> leads = tune(DoubleBasisRegressor(), X, y, search=search).leads
    >>> all(lead.standard_error >= 0 for lead in leads)
    True
    """

    candidate: int
    _: KW_ONLY
    gap: float
    standard_error: float


@dataclass(frozen=True, repr=False, kw_only=True)
class Tuning:
    """Result of `tune`.

    Attributes
    ----------
    embeddings : list of embeddings
        Embeddings of the search, its linear embeddings, and unions of embeddings.
    candidates : list of Candidate
        Candidates that were compared.
    rungs : list of Rung
        Rungs of the search.
    scores : list of dict
        For each rung, the `Score` of each candidate by its position.
    winner : int
        Position of the winning candidate.
    model : fitted estimator
        The winner, fitted to all bags.
    leads : list of Lead
        Leads of the winner over the best candidate of each embedding; empty without ``join``.
    judged : dict or None
        Result of `judge_fit`: the error of the winner on the bags of the holdout, which no choice
        has seen. It is given next to the errors of the best constant, ridge on the means of bags
        and a random forest.
    ranking : list of int
        Positions of the candidates, the best first: the winner, then those of the last rungs.

    See Also
    --------
    bagbasis.tune : Search embeddings, widths and penalties.
    Search : The candidates to compare.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(0.5, 2.0, 80)
    >>> X = [rng.normal(0, s, (30, 2)) for s in y]
    >>> from bagbasis import DoubleBasisRegressor, MomentsEmbedding, tune
    >>> from bagbasis.models import Search
    >>> search = Search([MomentsEmbedding()], heads=['ridge'])
    >>> result = tune(DoubleBasisRegressor(), X, y, search=search)
    >>> result.model.predict(X[:2]).shape
    (2,)
    """

    embeddings: list[Embedding[Any]]
    candidates: list[Candidate]
    rungs: list[Rung]
    scores: list[dict[int, Score]]
    winner: int
    model: Any
    leads: list[Lead]
    judged: dict[str, Any] | None = None

    @property
    def ranking(self) -> list[int]:
        """Positions of the candidates, the best first: the winner, then those of the last rungs."""
        reached = {
            c: (-r, score.error)
            for r, of_rung in enumerate(self.scores)
            for c, score in of_rung.items()
        }
        return sorted(reached, key=lambda c: (c != self.winner, reached[c], c))

    def plot(self, *, ax: Axes | None = None) -> Axes:
        """Draw the candidates with their errors, the winner first; see `plot_tuning`.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw into; default those of a new figure.

        Raises
        ------
        DataError
            If matplotlib is not installed (``pip install 'bagbasis[plots]'``).
        """
        from ...plotting.fits import plot_tuning  # noqa: PLC0415 - an extra

        return plot_tuning(self, ax=ax)

    def summary(self) -> FitSummary:
        """Return a summary of the search: the winner, and its error next to baselines."""
        n, of_model = len(self.candidates), self.model.summary()
        rows = {"compared": f"{n:,} {plural('candidate', n)}"} if n > 1 else {}
        if self.judged is not None:
            names = targets_in_words(self.model.outcome_.scored_names)
            rows["verdict"] = verdict_of(names, self.judged)
        return FitSummary(f"Tuning of {of_model.title}", {**rows, **of_model.rows})

    def __repr__(self) -> str:
        """Return the summary, without the arrays of candidates."""
        return str(self.summary())

    def _repr_html_(self) -> str:
        """Show the summary as a table in a notebook."""
        return self.summary()._repr_html_()


class Records:
    """Scores by key in a file; every new score is written immediately.

    Parameters
    ----------
    path : URL, path or None
        File for the scores; None keeps no file.
    identity : str
        Identity of the data; scores of other data are dropped.

    Raises
    ------
    StoreError
        If the file has other content, or cannot be written.
    """

    def __init__(self, path: str | os.PathLike[str] | None, identity: str) -> None:
        self._path = path
        self._identity = identity
        self._scores = self._load()

    def get(self, key: str) -> Score | None:
        """Return the score of a key, or None if it has no score yet."""
        return self._scores.get(key)

    def put(self, key: str, score: Score) -> None:
        """Keep a score, and write the file."""
        self._scores[key] = score
        if self._path is not None:
            scores = {key: score.to_dict() for key, score in self._scores.items()}
            values = {"identity": self._identity, "scores": scores}
            write_json(self._path, values, format=TUNE_FORMAT)

    def _load(self) -> dict[str, Score]:
        if self._path is None:
            return {}
        scores = read_json(
            self._path,
            self._known,
            damaged="not the state of a tune",
            remedy="delete it to start over",
        )
        return scores or {}

    def _known(self, values: dict[str, Any]) -> dict[str, Score]:
        """Return the scores of a file; empty if they belong to other data or an earlier version.

        If a newer version wrote the file, `NewerError` is raised, and the search does not start.
        """
        written = values[TUNE_FORMAT.key]
        if type(written) is int and written < TUNE_FORMAT.version:
            return {}
        values = TUNE_FORMAT.strip(values)
        if values["identity"] != self._identity:
            return {}
        return {key: read_saved(Score, score) for key, score in values["scores"].items()}
