"""`BagOfWordsEmbedding`: embed a bag as the fractions of its points nearest to each word."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from typing_extensions import override

from ..core import Integer, ListOf, RandomSeed, Real
from ..core.arrays import Floats, Integers
from ..core.errors import DataError, ParameterError, shown
from ..data.bags.bags import Bags
from ..data.bags.box import Box
from ..data.store.sampling import spread_rows
from .base import ChoiceSample, Embedding, EmbeddingSpec
from .bases.functions import MAX_FUNCTIONS
from .description import Description
from .kernels.words_kernels import word_shares
from .kinds import embedding

POINTS_PER_WORD = 256  # largest number of points per centre that k-means uses


@dataclass(frozen=True, kw_only=True)
class BagOfWordsSpec(EmbeddingSpec):
    """A fitted bag of words.

    Attributes
    ----------
    centres : tuple of float
        Coordinates of the n_words centres in the unit cube, one centre after the other.

    See Also
    --------
    bagbasis.BagOfWordsEmbedding : Fractions of points per k-means cluster.
    EmbeddingSpec : Base class of fitted embeddings.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(0.5, 2.0, 80)
    >>> X = [rng.normal(0, s, (30, 2)) for s in y]
    >>> from bagbasis import BagOfWordsEmbedding
    >>> BagOfWordsEmbedding(n_words=4).fit(X).spec_.n_features
    4
    """

    centres: Annotated[tuple[float, ...], ListOf(Real(), 1)]

    @override
    def check_together(self) -> None:
        if len(self.centres) % self.n_dims:
            raise ParameterError(
                f"centres is {shown(self.centres)}; expected points of {self.n_dims} coordinates"
            )

    @property
    def n_features(self) -> int:
        """Length of the embedding."""
        return len(self.centres) // self.n_dims

    @property
    @override
    def seconds_per_point(self) -> float:
        return 1e-9 * len(self.centres)

    @override
    def describe(self) -> Description:
        return Description(f"shares of points nearest to each of {self.n_features} words")

    @override
    def fill(self, bags: Bags, out: NDArray[Any], outside: Integers) -> None:
        centres = np.array(self.centres).reshape(-1, self.n_dims)
        self.run_kernel(word_shares, bags, centres, out, outside)


@embedding("bag_of_words", BagOfWordsSpec)
class BagOfWordsEmbedding(Embedding[BagOfWordsSpec]):
    """Fractions of a bag's points that are nearest to each centre of k-means.

    The embedding is a histogram whose bins are clusters of the points of all bags. Use it in many
    dimensions, where most cells of a grid would be empty. The features are the square roots of the
    fractions. The distance between two bags is therefore the Hellinger distance between their
    histograms.

    Parameters
    ----------
    n_words
        Number of centres. If the sample has fewer distinct points, there are fewer centres.
    seed
        Seed for k-means.

    Attributes
    ----------
    spec_ : BagOfWordsSpec
        The fitted embedding, with all parameters that `fit` chose.

    Notes
    -----
    The reference is Sutherland 2016, §2.2. The centres are computed by scikit-learn's
    `MiniBatchKMeans` from the points of a sample of bags, without labels. A model stores the
    centres in its description.

    See Also
    --------
    HistogramEmbedding : Histograms on a grid, for few dimensions.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(0.5, 2.0, 80)
    >>> X = [rng.normal(0, s, (30, 2)) for s in y]
    >>> from bagbasis import BagOfWordsEmbedding
    >>> embedding = BagOfWordsEmbedding(n_words=4).fit(X)
    >>> embedding.transform(X).shape
    (80, 4)
    """

    n_words: Annotated[int, Integer(1, MAX_FUNCTIONS)] = 64
    seed: RandomSeed = 0

    @override
    def decide(self, sample: ChoiceSample, out_of_box: str, box: Box) -> BagOfWordsSpec:
        # the words are centres of clusters of the sample
        from sklearn.cluster import MiniBatchKMeans  # noqa: PLC0415 - a tenth of a second

        n_words = Integer(1, MAX_FUNCTIONS // box.n_dims).check("n_words", self.n_words)
        points = spread_rows(_points(sample, out_of_box, box), POINTS_PER_WORD * n_words)
        n_words = min(n_words, len(np.unique(points, axis=0)))
        generator = np.random.RandomState(np.random.Philox(key=self.seed))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            clusters = MiniBatchKMeans(n_words, random_state=generator, n_init=3).fit(points)
        centres = tuple(clusters.cluster_centers_.ravel().tolist())
        return BagOfWordsSpec(centres=centres, out_of_box=out_of_box, box=box)


def _points(sample: ChoiceSample, out_of_box: str, box: Box) -> Floats:
    """Return the sample's points in the unit cube; points outside are clipped or dropped."""
    unit = np.concatenate([box.to_unit(bags.points) for bags in sample()])
    if out_of_box == "drop":
        unit = unit[((unit >= 0) & (unit <= 1)).all(axis=1)]
    if not len(unit):
        raise DataError("no points in the box to choose words from")
    clipped: Floats = np.clip(unit, 0, 1)
    return clipped
