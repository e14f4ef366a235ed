"""`PatternSearch`: choose the next place to observe, to find matching regions quickly."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core import Fraction, Instance, Integer, RandomSeed, checked
from ..core.arrays import Floats
from .field import Field
from .regions import RegionClassifier

MAX_DRAWS = 10_000  # per stage: errors of 1 % and less


class PatternSearch:
    """Choose the places to observe next, to find regions with a pattern.

    `suggest` returns the place whose observation is expected to reveal the most matching regions
    (Sutherland 2016, eq. 7.6). `observe` adds an observation and flags the regions whose match
    probability exceeds the threshold. A region stays flagged.

    Parameters
    ----------
    field : Field
        Gaussian process, with earlier observations if there are any.
    classifier : RegionClassifier
        Classifier that gives the match probability of each region.
    threshold : float in (0, 1)
        Threshold θ that the match probability T_g of a region must exceed.
    n_candidates : int or None
        Number of places that are compared, drawn anew each time. None: all places.
    n_outer, n_inner : int
        Numbers of draws of an observation, and of f given each drawn observation. Not used if the
        classifier has closed forms.
    n_draws : int
        Number of draws of f for the match probabilities that set flags.
    seed : int
        Random seed.

    Attributes
    ----------
    field : Field
        Field given all observations.
    flagged : bool, shape (n_regions,)
        Whether each region has been flagged.

    See Also
    --------
    Field : Gaussian process over places.
    BagRegions : Regions judged by a model of bags.
    ProbitRegions : Regions with a closed-form match probability.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from bagbasis.search import Field, PatternSearch, ProbitRegions
    >>> places = np.arange(12.0)[:, np.newaxis]
    >>> weights = np.kron(np.eye(3), np.ones(4) / 4)  # means of three regions of four places
    >>> search = PatternSearch(Field(places, 4 * RBF(2.0)), ProbitRegions(weights, -1.0))
    >>> place = search.suggest()
    >>> search.observe(place, 2.0)
    >>> search.flagged
    array([False,  True, False])
    >>> int(search.chances().argmax())  # the region that most probably matches
    1
    """

    field: Field
    flagged: NDArray[np.bool_]

    @checked
    def __init__(
        self,
        field: Annotated[Field, Instance()],
        classifier: Annotated[RegionClassifier, Instance()],
        *,
        threshold: Annotated[float, Fraction] = 0.7,
        n_candidates: Annotated[int, Integer(1)] | None = 80,
        n_outer: Annotated[int, Integer(1, MAX_DRAWS)] = 4,
        n_inner: Annotated[int, Integer(1, MAX_DRAWS)] = 15,
        n_draws: Annotated[int, Integer(1, MAX_DRAWS)] = 100,
        seed: RandomSeed = 0,
    ) -> None:
        classifier.check_field(field)
        self.field, self.classifier = field, classifier
        self.threshold = threshold
        self.n_candidates = n_candidates
        self.n_outer = n_outer
        self.n_inner = n_inner
        self.n_draws = n_draws
        self._rng = np.random.default_rng(seed)
        self.flagged = self.chances() > self.threshold

    def chances(self) -> Floats:
        """Return the match probability T_g of each region, shape (n_regions,)."""
        every = np.arange(len(self.classifier.regions))
        return self.classifier.chances(self.field, every, n_draws=self.n_draws, rng=self._rng)

    def suggest(self) -> int:
        """Return the place to observe next; ties go to the place with the largest variance."""
        n_places = self.field.n_places
        n = n_places if self.n_candidates is None else min(self.n_candidates, n_places)
        candidates = self._rng.choice(n_places, n, replace=False)
        rewards = self.classifier.expected_rewards(
            self.field,
            candidates,
            regions=np.flatnonzero(~self.flagged),
            threshold=self.threshold,
            n_draws=(self.n_outer, self.n_inner),
            rng=self._rng,
        ).sum(axis=1)
        best = candidates[rewards == rewards.max()]
        return int(best[self.field.variance[best].argmax()])

    def observe(self, place: int, values: ArrayLike) -> None:
        """Add an observation at a place; see `Field.observe`."""
        self.field = self.field.observe(place, values)
        self.flagged |= self.chances() > self.threshold
