"""Every implementation in the table against its slow twin."""

from __future__ import annotations

import zlib

import numpy as np
import pytest

from .table import IMPLEMENTATIONS


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
def test_implementation_equals_its_oracle(name):
    """The package computes what the textbook formula says, to the entry's tolerance."""
    entry = IMPLEMENTATIONS[name]
    inputs = entry.make(np.random.default_rng(zlib.crc32(name.encode())), entry.n)
    ours, truth = entry.implementation(*inputs), entry.oracle(*inputs)
    if not isinstance(ours, tuple):
        ours, truth = (ours,), (truth,)
    assert len(ours) == len(truth)
    for value, expected in zip(ours, truth, strict=True):
        np.testing.assert_allclose(value, expected, atol=entry.atol, rtol=entry.rtol)
