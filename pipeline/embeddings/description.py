"""What reports and pictures say of an embedding."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SeriesShape:
    """The orthogonal series that an embedding describes densities by.

    Attributes
    ----------
    basis : str
    n_per_dim : int or None
    max_norm : float or None
        One of both is None; see `bases.index_set`.
    joint : bool
        Over all coordinates together; else over marginals.

    See Also
    --------
    Description : What an embedding reports about itself.
    bagbasis.densities.Densities : Densities as series.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(0.5, 2.0, 80)
    >>> X = [rng.normal(0, s, (30, 2)) for s in y]
    >>> from bagbasis import ProjectionEmbedding
    >>> ProjectionEmbedding(n_per_dim=5).fit(X).spec_.describe().series
    SeriesShape(basis='cosine', n_per_dim=5, max_norm=None, joint=True)
    """

    basis: str
    n_per_dim: int | None
    max_norm: float | None
    joint: bool


@dataclass(frozen=True)
class Description:
    """Names and numbers that reports and plots show for an embedding.

    Attributes
    ----------
    text : str
        Noun for the vector that a bag becomes.
    series : SeriesShape or None
        Series estimate of the bag's density, for pictures; None if the embedding has none.
    points : str
        Noun for the contents of the box.

    See Also
    --------
    EmbeddingSpec : Base class of fitted embeddings.
    SeriesShape : Orthogonal series of a density.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(0.5, 2.0, 80)
    >>> X = [rng.normal(0, s, (30, 2)) for s in y]
    >>> from bagbasis import MomentsEmbedding
    >>> MomentsEmbedding().fit(X).spec_.describe().text
    'standardised mean and covariance'
    """

    text: str
    series: SeriesShape | None = None
    points: str = "points"
