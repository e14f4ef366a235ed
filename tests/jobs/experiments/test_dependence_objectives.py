"""`dependence-objectives` at small scale: planted truths are found."""

from __future__ import annotations

import numpy as np

from bagbasis.jobs.experiments.data.planted import planted_rows


def test_copies_tell_less():
    """A copy is as like its original as said, and the target does not depend on it otherwise."""
    x, y, planted = planted_rows(20_000, 6, seed=0, copies=True)
    correlation = np.abs(np.corrcoef(x.T))
    others = [j for j in range(6) if j not in planted]
    np.testing.assert_allclose(correlation[np.ix_(planted, others)].max(axis=1), 0.894, atol=0.01)
    a, b, c = planted
    rest = y - np.sin(2 * x[:, a]) - 0.7 * (x[:, b] ** 2 - 1) - np.sign(x[:, c])
    assert rest.std() < 0.31
