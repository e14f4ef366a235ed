"""`MomentsEmbedding` against numpy's means and covariances."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

from bagbasis import DataError, MomentsEmbedding
from bagbasis.embeddings import MomentsSpec

pytestmark = pytest.mark.portable

RNG = np.random.default_rng(0)
UNIT = [RNG.random((size, 3)) for size in (1, 30, 257)]


def test_mean_alone():
    """covariance=False keeps the first d columns."""
    both = MomentsEmbedding(standardize=False).fit_transform(UNIT)
    alone = MomentsEmbedding(covariance=False, standardize=False).fit_transform(UNIT)
    assert alone.dtype == np.float32
    np.testing.assert_array_equal(alone, both[:, :3])


def test_small_spread_far_from_zero():
    """Two passes: a spread of 1e-7 around 0.9 keeps its digits, where E x² − (E x)² has none."""
    deviations = 1e-7 * RNG.standard_normal((1000, 2))
    out = MomentsEmbedding(standardize=False, box=[(0, 1)] * 2, dtype="float64").transform(
        [0.9 + deviations]
    )
    expected = np.cov(deviations, rowvar=False, bias=True)[np.triu_indices(2)]
    np.testing.assert_allclose(out[0, 2:], expected, rtol=1e-6)


def test_standardized():
    """Each number has mean 0 and deviation 1 over the bags; one that never changes stays 0."""
    bags = [np.column_stack([RNG.random((9, 2)), np.full(9, 0.5)]) for _ in range(50)]
    options = {"box": [(0, 1)] * 3, "dtype": "float64"}
    plain = MomentsEmbedding(standardize=False, **options).fit_transform(bags)
    out = MomentsEmbedding(**options).fit_transform(bags)
    changing = [0, 1, 3, 4, 6]
    expected = (plain - plain.mean(axis=0))[:, changing] / plain.std(axis=0)[changing]
    np.testing.assert_allclose(out[:, changing], expected, atol=1e-9)
    assert np.abs(np.delete(out, changing, axis=1)).max() < 1e-12


def test_what_is_dropped_standardizes_nothing():
    """A bag without a point in the box says nothing; of such bags alone there is no spread."""
    bags = [*UNIT[1:], np.full((4, 3), 7.0)]
    embedding = MomentsEmbedding(out_of_box="drop", box=[(0, 1)] * 3)
    assert embedding.fit(bags).spec_ == embedding.fit(bags[:2]).spec_
    with pytest.raises(DataError, match="no bags to standardise"):
        embedding.fit(bags[2:])


def test_specs_and_parameters_of_before():
    """Versions that did not standardise wrote neither; both come back as they were."""
    fitted = MomentsEmbedding().fit(UNIT).spec_
    plain = MomentsEmbedding(standardize=False, box=[(0, 1)] * 3).fit(UNIT).spec_
    assert set(plain.to_dict()) == {"covariance", "out_of_box", "box"}
    for spec in (fitted, plain):
        assert MomentsSpec.from_dict(json.loads(json.dumps(spec.to_dict()))) == spec
    assert MomentsEmbedding.from_params({"covariance": True}).standardize is False


MEANS_OF_WIDE_BAGS = """
import resource
import numpy as np
from bagbasis import Bags, MomentsEmbedding
from bagbasis.core.compiling import compiling_at_once
from bagbasis.execution.worker_threads import use_cores

bags = Bags.from_list([np.ones((2, 9_000)) for _ in range(3)])
with compiling_at_once(), use_cores(1):
    MomentsEmbedding(covariance=False).fit_transform(Bags.from_list([np.eye(2)]))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    MomentsEmbedding(covariance=False).fit_transform(bags)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.long
def test_means_of_wide_bags_write_no_square():
    """Covariances of 9,000 coordinates would take 650 MB, which means alone do not touch."""
    grown = subprocess.run(
        [sys.executable, "-c", MEANS_OF_WIDE_BAGS], check=True, capture_output=True, text=True
    ).stdout
    assert int(grown) < 2**18  # KiB
