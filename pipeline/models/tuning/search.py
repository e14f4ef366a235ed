"""`Search`: the candidates that `tune` compares, and the rungs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any, Self

from ...core import (
    Instance,
    Integer,
    ListOf,
    OneOf,
    RandomSeed,
    Real,
    check_parameters,
    checked,
    documented,
)
from ...core.declarations import named_calls
from ...embeddings.base import Embedding
from ...embeddings.hdd import JOINT_DIMS, HDDEmbedding
from ...embeddings.mean_map import MeanMapEmbedding
from ...embeddings.moments import MomentsEmbedding
from ...embeddings.sliced import SlicedWassersteinEmbedding
from ..fitting.choice.short_list import short_list

EVERY_HEAD = ("ridge", "trees", "stack")
DEFAULT_MULTIPLIERS = (0.5, 0.7, 1.0, 1.4, 2.0)


@documented
@named_calls
@dataclass(frozen=True)
class Search:
    """The candidates that `tune` compares, and the rungs on which it compares them.

    Random features that learn from labels are compared with their initial Gaussian frequencies, and
    learn in the last fit of the winner. They cannot be used with `EmbeddingUnion` and
    ``join="sum"``.

    Parameters
    ----------
    embeddings : sequence of embeddings, not fitted
        Embeddings to compare, each with random features.
    scale_multipliers
        Multiples of σ, tried with each embedding; all share the coefficients of the embedding.
    eta
        Halving rate: a rung keeps the best 1/eta of its candidates, and the next rung has eta times
        as many bags.
    first_bags
        Number of bags in the first rung. Default: at least 2,000, such that one candidate is left
        for the fit to all bags.
    seed
        Seed for drawing the order of the bags.
    linear : sequence of embeddings
        Further embeddings to compare, without random features.
    join
        Whether to join the best embedding with others by `EmbeddingUnion` after the rungs, one at a
        time, as long as the error falls by more than its standard error.
    heads
        Heads to compare for the winner, see `DoubleBasisRegressor`. They are compared by five folds
        of all bags, which keep groups whole. Of the heads within half a standard error of the best,
        the cheapest is chosen; if ``choose`` compares nothing else, the stack is chosen. If the
        rows for the trees do not fit in memory, the ridge is chosen, and the model's report gives
        the reason. Default: the head of the estimator.
    choose
        Whether to begin with the embedding and width that ``embedding="auto"`` chooses by folds.
        With at most 2,000 bags nothing else is compared, because a held-out tenth would have too
        few bags.

    See Also
    --------
    bagbasis.tune : Search embeddings, widths and penalties.
    Candidate : A compared model.
    Rung : A stage of the search.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(0.5, 2.0, 80)
    >>> X = [rng.normal(0, s, (30, 2)) for s in y]
    >>> from bagbasis import DoubleBasisRegressor, ExtremesEmbedding, MomentsEmbedding, tune
    >>> from bagbasis.models import Search
    >>> search = Search([MomentsEmbedding(), ExtremesEmbedding()], scale_multipliers=[0.5, 1.0])
    >>> result = tune(DoubleBasisRegressor(), X, y, search=search)
    >>> len(result.candidates)
    4
    """

    embeddings: Annotated[Sequence[Embedding[Any]], ListOf(Instance("Embedding"), 1)]
    _: KW_ONLY
    scale_multipliers: Annotated[Sequence[float], ListOf(Real(gt=0), 1)] = DEFAULT_MULTIPLIERS
    eta: Annotated[int, Integer(2)] = 3
    first_bags: Annotated[int, Integer(1)] | None = None
    seed: RandomSeed = 0
    linear: Annotated[Sequence[Embedding[Any]], ListOf(Instance("Embedding"))] = ()
    join: bool = False
    heads: Annotated[Sequence[str], ListOf(OneOf(*EVERY_HEAD), 1)] | None = None
    choose: bool = False

    @classmethod
    @checked
    def auto(cls, n_dims: Annotated[int, Integer(1)] = 1) -> Self:
        """Return a search that also chooses the embedding.

        The search begins with the choice of ``embedding="auto"``. With at most 2,000 bags, nothing
        else is compared, and the head is the stack. With more bags, the choice is compared with
        ridge on the means of bags, moments, mean map, Jensen-Shannon and sliced Wasserstein. For
        points with more than three coordinates (``n_dims``), the other candidates of "auto" are
        compared, too. The best embeddings are joined. Ridge, trees and their stack are compared as
        the head of the winner.
        """
        kernels: list[Embedding[Any]] = [
            MomentsEmbedding(),
            MeanMapEmbedding(),
            HDDEmbedding("js"),
            SlicedWassersteinEmbedding(),
        ]
        if n_dims > JOINT_DIMS:
            kernels = [choice.made() for choice in short_list(n_dims)]
        means = [MomentsEmbedding(covariance=False)]
        return cls(kernels, linear=means, join=True, heads=EVERY_HEAD, choose=True)

    def check(self) -> None:
        """Raise ParameterError for values that cannot be used together."""
        check_parameters(self)
