"""`independence` at small scale, and the data that it draws."""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis.jobs.experiments.hypotheses.independence import (
    correlation,
    independent,
    sign,
    sinusoid,
)


def test_data_of_dependence():
    """Laws and dependence are as they are said to be."""
    rng = np.random.default_rng(0)
    x, y = sinusoid(rng, 20_000)
    assert len(x) == len(y) == 20_000
    assert (np.sin(2 * x) * np.sin(2 * y)).mean() == pytest.approx(0.25, abs=0.02)
    x, y = sign(rng, 20_000)
    assert (np.sign(x).prod(axis=1) == np.sign(y)).all()
    assert abs(np.corrcoef(x[:, 0], y)[0, 1]) < 0.03
    assert np.corrcoef(*correlation(rng, 20_000))[0, 1] == pytest.approx(0.15, abs=0.03)
    x, y = independent(rng, 10)
    assert (x.shape, y.shape) == ((10, 2), (10,))
