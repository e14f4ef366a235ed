"""The spectrum of a Gram matrix without its eigenvectors, against numpy's with them."""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis.regression.spectrum import Spectrum
from tests.oracles.ridge_entries import collected


@pytest.mark.parametrize(("n", "D"), [(5, 1), (2, 2), (40, 3), (33, 64), (500, 64), (700, 257)])
@pytest.mark.parametrize("k", [1, 7])
def test_against_the_eigenvectors(n, D, k):
    """Eigenvalues, solutions, degrees of freedom and residuals: of one feature, of fewer rows than
    features, and of sizes beyond a block of LAPACK's."""
    rng = np.random.default_rng(n)
    z, y = rng.normal(size=(n, D)), rng.normal(size=(n, k))
    ours = Spectrum(collected(z, y))
    centred, targets = z - z.mean(axis=0), y - y.mean(axis=0)
    e, vectors = np.linalg.eigh(centred.T @ centred)
    e = np.maximum(e, 0)
    np.testing.assert_allclose(ours.values, e, atol=1e-12 * e[-1])
    for alpha in (1e-3, 1.0, 1e3):
        truth = vectors @ (vectors.T @ centred.T @ targets / (e + alpha)[:, None])
        np.testing.assert_allclose(ours.solve(alpha), truth, atol=1e-9 * np.abs(truth).max())
        assert ours.degrees_of_freedom(alpha) == pytest.approx((e / (e + alpha)).sum(), rel=1e-8)
        left = ((targets - centred @ truth) ** 2).sum(axis=0)
        yy = (targets**2).sum(axis=0)
        np.testing.assert_allclose(ours.residual_squares(alpha, yy), left, atol=1e-8 * yy.max())
    if n > D:
        truth = np.linalg.lstsq(centred, targets, rcond=None)[0]
        np.testing.assert_allclose(ours.least_norm(1e-10), truth, atol=1e-9)
