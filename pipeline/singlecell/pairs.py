"""Divergences of all pairs of samples in blocks: on a cluster, with progress and resumption."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from operator import add
from typing import Annotated

import numpy as np

from ..core import Integer, UrlOrPath, checked, documented
from ..core.arrays import Floats
from ..core.errors import ParameterError
from ..data.bags.bags import Bags, BagsInMemory, as_bags
from ..data.storage.files import read_bytes, writing
from ..data.storage.urls import normalize_url
from ..data.store.store import BagStore
from ..densities.divergences.matrix import divergence_matrix
from ..execution.progress import Progress, Report
from ..execution.tasks import map_reduce

PairBlock = tuple[int, int, int, int]
"""First and last + 1 of the rows, and of the columns."""


Neighbours = Annotated[int, Integer(1)]
N_NEIGHBOURS = 25  # as in GloScope


@documented
@checked
def divergence_blocks(
    X: BagStore | BagsInMemory,
    divergence: str = "symmetric_kl",
    *,
    k: Neighbours | None = N_NEIGHBOURS,
    bags_per_block: Annotated[int, Integer(1)] = 16,
    checkpoints: UrlOrPath | None = None,
    progress: Progress | None = None,
) -> Floats:
    """Compute the divergences of all pairs of bags exactly, block by block.

    For a store, blocks are computed on the open cluster; for bags in memory, in this process. Each
    finished block is kept in ``checkpoints`` under a digest of its points. An interrupted call can
    therefore be repeated and resumes; blocks of changed bags are computed anew. "symmetric_kl" with
    k = 25 is GloScope's matrix (Wang et al., Genome Biology 2024).

    Parameters
    ----------
    X : BagStore, Bags, or list of arrays (n_i, n_dims)
        Bags of points.
    divergence
        Name of a symmetric divergence of `divergence_matrix`.
    k
        Number k of the nearest neighbour whose distance is used; None for kernel divergences.
    bags_per_block
        Number of rows and of columns of a block. At most the running blocks are lost if the call is
        interrupted.
    checkpoints : URL
        Folder for finished blocks, which may be shared with other calls. It is not removed.
    progress : callable
        Function that is called with (pairs done, pairs in all).

    Returns
    -------
    array of float64, shape (n_bags, n_bags)
        Symmetric matrix of divergences, with a diagonal of 0. Estimates may be negative for similar
        samples.

    Raises
    ------
    BagError, DataError, ParameterError
        In the same cases as `divergence_matrix`.

    See Also
    --------
    sample_distances : Distances between samples.
    bagbasis.densities.divergence_matrix : Divergences between bags.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> from bagbasis.singlecell import divergence_blocks
    >>> X = [rng.normal(m, 1, (60, 2)) for m in (0, 0, 3)]
    >>> divergence_blocks(X, k=10).shape
    (3, 3)
    """
    source = X if isinstance(X, BagStore) else as_bags(X)
    n = source.n_bags if isinstance(source, BagStore) else len(source)
    if divergence in ("kl", "renyi"):
        raise ParameterError(f"{divergence!r} has a direction; take one that has none")
    folder = None if checkpoints is None else normalize_url(checkpoints)
    starts = range(0, n, bags_per_block)
    blocks = [
        (i, min(n, i + bags_per_block), j, min(n, j + bags_per_block))
        for i in starts
        for j in starts
        if i <= j
    ]
    matrix = np.zeros((n, n))
    sizes = [(b - a) * (d - c) for a, b, c, d in blocks]
    task = _BlockTask(source, divergence, k, folder)
    here = not isinstance(source, BagStore)
    results = map_reduce(task, blocks, add, sizes=sizes, progress=progress, here=here) if n else []
    for (a, b, c, d), values in results:
        matrix[a:b, c:d], matrix[c:d, a:b] = values, values.T
    np.fill_diagonal(matrix, 0)
    return matrix


@dataclass(frozen=True)
class _BlockTask:
    """The divergences of one block: a pure function of its fields and the block."""

    source: BagStore | Bags
    divergence: str
    k: int | None
    folder: str | None

    def __call__(self, block: PairBlock, report: Report) -> list[tuple[PairBlock, Floats]]:
        """Return the block with its divergences, from the checkpoints or newly computed."""
        return [(block, self._values(block))]

    def _values(self, block: PairBlock) -> Floats:
        a, b, c, d = block
        rows = self._read(a, b)
        columns = rows if (a, b) == (c, d) else self._read(c, d)
        place = None if self.folder is None else f"{self.folder}/{self._name(rows, columns)}"
        content = None if place is None else read_bytes(place)
        if content is not None and len(content) == 8 * (b - a) * (d - c):
            return np.frombuffer(content, dtype="<f8").reshape(b - a, d - c).copy()
        others = None if columns is rows else columns
        values = divergence_matrix(rows, others, divergence=self.divergence, k=self.k)
        if place is not None:
            with writing(place) as path:
                path.write_bytes(np.ascontiguousarray(values, dtype="<f8").tobytes())
        return values

    def _name(self, rows: Bags, columns: Bags) -> str:
        """Return a name that identifies the divergences of these points."""
        digest = hashlib.sha256(json.dumps([self.divergence, self.k]).encode())
        for bags in (rows, columns):
            sizes = np.diff(bags.offsets)
            digest.update(
                json.dumps([bags.points.dtype.str, bags.n_dims, *sizes.tolist()]).encode()
            )
            digest.update(np.ascontiguousarray(bags.points).data)
        return f"divergences-{digest.hexdigest()[:32]}.bin"

    def _read(self, start: int, stop: int) -> Bags:
        if isinstance(self.source, BagStore):
            return self.source.read(start, stop)
        return self.source[start:stop]
