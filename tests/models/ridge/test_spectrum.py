"""Both solvers of a path, the spectrum without its eigenvectors and a factor per penalty,
against numpy's eigenvectors."""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis.models.ridge.spectrum import Factors, Spectrum
from tests.oracles.ridge_entries import collected, ridge_rows

pytestmark = pytest.mark.portable


@pytest.mark.parametrize(("n", "D"), [(5, 1), (2, 2), (40, 3), (33, 64), (500, 64), (700, 257)])
@pytest.mark.parametrize("k", [1, 7])
@pytest.mark.parametrize("known", [collected, ridge_rows], ids=["statistics", "rows"])
def test_against_the_eigenvectors(n, D, k, known):
    """Eigenvalues, solutions, degrees of freedom and residuals: of one feature, of fewer rows than
    features, and of sizes beyond a block of LAPACK's."""
    rng = np.random.default_rng(n)
    z, y = rng.normal(size=(n, D)), rng.normal(size=(n, k))
    centred, targets = z - z.mean(axis=0), y - y.mean(axis=0)
    e, vectors = np.linalg.eigh(centred.T @ centred)
    e = np.maximum(e, 0)
    yy = (targets**2).sum(axis=0)
    summary = known(z, y)
    spectrum = Spectrum(summary)
    common = min(n, D)
    np.testing.assert_allclose(spectrum.values[-common:], e[-common:], atol=1e-12 * e[-1])
    for alpha in (1e-3, 1.0, 1e3):
        truth = vectors @ (vectors.T @ centred.T @ targets / (e + alpha)[:, None])
        remaining = ((targets - centred @ truth) ** 2).sum(axis=0)
        for ours in (spectrum, Factors(summary)):
            solved = ours.solve(alpha)
            coef = summary.coefficients(ours.back(solved))
            np.testing.assert_allclose(coef, truth, atol=1e-9 * np.abs(truth).max())
            degrees = ours.degrees_of_freedom(alpha)
            assert degrees == pytest.approx((e / (e + alpha)).sum(), rel=1e-3, abs=1e-5)
            residuals, _ = summary.residual_squares(solved, ours.right_side, alpha, 0.0)
            np.testing.assert_allclose(residuals, remaining, atol=1e-8 * yy.max())
        degrees = spectrum.degrees_of_freedom(alpha)
        assert degrees == pytest.approx((e / (e + alpha)).sum(), rel=1e-8)
    constant = Spectrum(known(np.ones((n, D)), y))
    np.testing.assert_array_equal(constant.back(constant.solve(0.0)), 0)
    if n > D:
        truth = np.linalg.lstsq(centred, targets, rcond=None)[0]
        result = summary.coefficients(spectrum.back(spectrum.least_norm(1e-10)))
        np.testing.assert_allclose(result, truth, atol=1e-9)
