"""Double-Basis models of several embeddings, each tuned alike: by a tenth of the training bags."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from sklearn.base import clone

from bagbasis import Bags, DoubleBasisClassifier, DoubleBasisRegressor, RandomFourierFeatures

ALPHAS = 10.0 ** np.arange(-6.0, 0.5, 0.5)  # a bag
AROUND = (0.1, 10**-0.5, 1.0, 10**0.5)  # of the penalty a bag that few bags choose, for more


@dataclass(frozen=True)
class Choice:
    """What the validation set chose.

    Attributes
    ----------
    embedding : an embedding
    multiplier : float
        σ over the median distance.
    alpha_a_bag : float
        λ over the number of training bags.
    score : float
        Validation error over the variance of the target.
    seconds : float
        For all that was compared.
    """

    embedding: Any
    multiplier: float
    alpha_a_bag: float
    score: float
    seconds: float

    @property
    def values(self) -> dict[str, Any]:
        """In types JSON knows."""
        return {**vars(self), "embedding": described(self.embedding)}


def choose(
    kind: type[DoubleBasisRegressor] | type[DoubleBasisClassifier],
    candidates: Sequence[Any],
    multipliers: Sequence[float],
    training: tuple[Bags, Any],
    n_features: int,
    seed: int,
) -> Choice:
    """The embedding, σ and λ of least error on the tenth of the bags that is held out (001, §5).

    Parameters
    ----------
    candidates : embeddings
    training : bags and their targets
    n_features : int
        D while choosing.
    """
    begun = time.perf_counter()
    found = []
    for embedding, multiplier in product(candidates, multipliers):
        model = fit(kind, embedding, multiplier, training, n_features, seed, ALPHAS)
        score = float(model.alpha_scores_.min())
        found.append((score, embedding, multiplier, model.alpha_ / len(training[0])))
    score, embedding, multiplier, alpha = min(found, key=lambda each: each[0])
    return Choice(embedding, multiplier, float(alpha), score, time.perf_counter() - begun)


def fit_chosen(
    kind: type[DoubleBasisRegressor] | type[DoubleBasisClassifier],
    choice: Choice,
    training: tuple[Bags, Any],
    n_features: int,
    seed: int,
) -> Any:
    """The model of a choice; λ, which goes with bags and features, is chosen again near by."""
    alphas = choice.alpha_a_bag * np.array(AROUND)
    return fit(kind, choice.embedding, choice.multiplier, training, n_features, seed, alphas)


def fit(
    kind: type[DoubleBasisRegressor] | type[DoubleBasisClassifier],
    embedding: Any,
    multiplier: float,
    training: tuple[Bags, Any],
    n_features: int,
    seed: int,
    alphas_a_bag: Any,
) -> Any:
    """A Double-Basis model, λ chosen by the tenth that is held out, then fitted to all bags."""
    bags, y = training
    return kind(
        embedding=clone(embedding),
        random_features=RandomFourierFeatures(n_features, scale_multiplier=multiplier, seed=seed),
        alpha="validation",
        alphas=len(bags) * np.asarray(alphas_a_bag),
    ).fit(bags, y)


def described(embedding: Any) -> dict[str, Any]:
    """An embedding's class and those of its parameters that differ from the defaults."""
    defaults = type(embedding)().get_params()
    params = {k: v for k, v in embedding.get_params().items() if v != defaults[k]}
    return {"embedding": type(embedding).__name__, **params}


def described_all(methods: Mapping[str, Sequence[Any]]) -> dict[str, list[dict[str, Any]]]:
    """`described` of the candidates of each method."""
    return {name: [described(each) for each in candidates] for name, candidates in methods.items()}
