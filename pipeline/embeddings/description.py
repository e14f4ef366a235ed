"""Descriptions of embeddings for reports and plots."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass


@dataclass(frozen=True, kw_only=True)
class SeriesShape:
    """The orthogonal series by which an embedding describes densities.

    Attributes
    ----------
    basis : str
        Name of the basis.
    n_per_dim : int or None
        Number of functions per dimension of a tensor index set; see `bases.index_set`.
    max_norm : float or None
        Radius of a ball index set. Either ``n_per_dim`` or ``max_norm`` is None.
    joint : bool
        Whether the series covers all coordinates together; otherwise it covers marginals.

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
        Noun phrase for the embedding vector of a bag.
    series : SeriesShape or None
        Series that estimates the density of a bag, for plots; None if the embedding has no series.
    points : str
        Noun for the objects in the box.

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
    _: KW_ONLY
    series: SeriesShape | None = None
    points: str = "points"
