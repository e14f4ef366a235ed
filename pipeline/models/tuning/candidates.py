"""Candidates: the models that are compared."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Annotated, Any

from sklearn.base import clone

from ...core import Instance, checked
from ...core.errors import ParameterError
from ...embeddings.base import Embedding
from ...embeddings.random_features.base import RandomFeatures
from ...embeddings.random_features.fourier import RandomFourierFeatures
from ...execution.worker_threads import kernel_threads
from ..base import DoubleBasis, fit_parameters_of
from ..fitting.feature_map import FeatureMap, resolve_features, sampled_embeddings
from ..fitting.planning import choose_columns
from ..fitting.problem import Problem
from .search import Search


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """One of the models that a search compares.

    Attributes
    ----------
    embedding : int
        Position of the embedding in `Tuning.embeddings`.
    scale_multiplier : float or None
        Width of the random features as a multiple of the default; None without random features.
    features : FeatureMap
        The fitted embedding and random-feature map.
    first : Embedding
        The embedding before fitting.

    See Also
    --------
    Search : The candidates to compare.
    Score : Score of a candidate on one rung.
    bagbasis.tune : Search embeddings, widths and penalties.

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
    >>> result.candidates[result.winner].scale_multiplier > 0
    True
    """

    embedding: int
    scale_multiplier: float | None
    features: FeatureMap
    first: Embedding[Any]

    @checked
    def estimator(self, base: Annotated[DoubleBasis, Instance()]) -> DoubleBasis:
        """Return an unfitted copy of ``base`` with the parameters of the candidate."""
        made: DoubleBasis = clone(base)
        made.set_params(embedding=clone(self.first), random_features=False)
        if self.scale_multiplier is not None:
            second = _random_features(base).set_params(scale_multiplier=self.scale_multiplier)
            made.set_params(random_features=second)
        elif self.features.beside is None and base.baseline is not None:
            made.set_params(baseline=None)
        return made


def resolve_candidates(problem: Problem, base: DoubleBasis, search: Search) -> list[Candidate]:
    """Combine every embedding with every multiplier of σ, then add the linear ones.

    Equal candidates are kept once.

    Raises
    ------
    ParameterError
        If an embedding refuses a value, or multipliers are given and σ is a number.
    """
    second = _random_features(base)
    if second.scale != "median" and tuple(search.scale_multipliers) != (1.0,):
        raise ParameterError(
            f"scale_multipliers are of the median distance, and scale is {second.scale!r}; "
            "choose scale='median' or scale_multipliers=(1.0,)"
        )
    candidates: dict[str, Candidate] = {}
    for i, embedding in enumerate([*search.embeddings, *search.linear]):
        multipliers = search.scale_multipliers if i < len(search.embeddings) else ()
        try:
            made = resolve_widths(problem, base, embedding, i, multipliers)
        except ParameterError as error:
            text = " ".join(repr(embedding).split())
            raise ParameterError(f"embedding {i + 1} of the search, {text}: {error}") from error
        for candidate in made:
            candidates.setdefault(digest(candidate.features.to_dict()), candidate)
    return list(candidates.values())


def resolve_widths(
    problem: Problem,
    base: DoubleBasis,
    embedding: Embedding[Any],
    place: int,
    multipliers: Sequence[float],
) -> list[Candidate]:
    """Combine an embedding with every multiplier of σ, or return the linear candidate.

    The sample that decides widths and landmarks is embedded once. ``place`` is the position of the
    embedding.
    """
    made_of = partial(Candidate, embedding=place, first=embedding)
    with kernel_threads():
        first = resolve_features(problem.source, clone(embedding), None)
        sample, made = cache(partial(sampled_embeddings, problem.source, first)), []
        beside = choose_columns(problem, base.baseline, first, sample)
        if not multipliers:  # a candidate that is linear in the embedding has no linear baseline
            beside = None if beside is None or beside.spec is None else beside
            return [made_of(scale_multiplier=None, features=replace(first, beside=beside))]
        for multiplier in multipliers:
            width = _random_features(base).set_params(scale_multiplier=multiplier)
            inputs = first.n_features, first.embedding.blocks
            second = width.for_comparison(*inputs).resolve(inputs[0], sample, inputs[1])
            features = replace(first, second=second, beside=beside)
            made.append(made_of(scale_multiplier=float(multiplier), features=features))
    return made


def digest(values: object) -> str:
    """Return a hexadecimal hash of JSON-able values: equal for equal values, in any process."""
    text = json.dumps(values, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _random_features(base: DoubleBasis) -> RandomFeatures:
    second = fit_parameters_of(base).random_features
    if second is False:
        raise ParameterError("random_features=False has no width to compare: fit the model")
    return clone(second) if second is not None else RandomFourierFeatures()
