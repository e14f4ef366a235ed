"""What two samples are refused for: each kind of message once, with the input that it names."""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis import BagbasisError, ProjectionEmbedding
from bagbasis.hypotheses import MeanEmbeddings, two_sample_test

X, Y = np.random.default_rng(0).random((2, 9, 2))
BAGS = [np.eye(3, 2)] * 4
ALIKE = {"a": np.ones((3, 2)), "b": np.ones((4, 2))}
GROUPS = list("aaabbbccc"), list("dddeeefff")
SERIES = {"null": "wild_bootstrap", "correlation_length": 3.0}


def learning(**more):
    """The locations are made where the test is called: their parameters may be refused."""
    return {"statistic": lambda: MeanEmbeddings(**{"n_locations": 1, **more})}


SAMPLES = [
    ({"b": BAGS}, "points of one bag are .*unit='point'"),
    ({"embedding": ProjectionEmbedding()}, "for bags"),
    ({"a": BAGS, "b": BAGS, "embedding": "mean"}, "embedding is 'mean'; expected an"),
    ({"unit": "bag"}, "a is a sample of points; unit='bag'"),
    ({"b": X[:, :1]}, "samples of different dimensions: a 2, b 1"),
    ({"a": X[:1]}, "1 point in a; a test compares at least two"),
    ({"a": np.where(np.eye(9, 2), np.nan, X)}, "a: point 0 holds NaN"),
    ({**ALIKE, "bandwidth": 1.0}, "all rows .* are alike"),
    ({**ALIKE, "statistic": "fuse"}, "all rows of both samples are alike"),
    ({"a": 1e200 * X, "standardize": False}, "distances of .* are from .*: take other units"),
    (
        {"a": 1e-200 * X, "b": 1e-200 * Y, "statistic": "mmd_u", "standardize": False},
        "the median distance of two rows is 0, .*: take other units",
    ),
    (
        {"a": 1e200 * X, "statistic": "mmd_u", "standardize": False},
        "the median distance .*: take other units",
    ),
]
UNITS = [
    ({"groups": (GROUPS[0], GROUPS[0])}, "the group a is in both samples"),
    ({"groups": list("abc")}, "expected .labels of a, labels of b."),
    ({"groups": (list("abc"), GROUPS[1])}, "a label for each of the 9"),
    ({"groups": (["a"] * 9, GROUPS[1])}, "1 group in a"),
    ({"groups": GROUPS, "null": "gamma"}, "takes rows for independent"),
    ({"groups": GROUPS, "statistic": "mmd_block"}, "with groups the statistic 'mmd_block' has"),
]
STATISTICS = [
    ({"statistic": "fuze"}, r"'fuze' \(did you mean 'fuse'\?\); expected one of"),
    ({"null": "normal"}, "null is 'normal'; the statistic 'mmd_u' admits"),
    ({"statistic": "fastfood", "kernel": "laplacian"}, "the statistic 'fastfood' admits"),
    ({"statistic": "energy", "kernel": "gaussian"}, "the statistic 'energy' has no kernel"),
    ({"statistic": "energy", "bandwidth": 1.0}, "bandwidth is 1.0; 'energy' has no kern"),
    ({"statistic": "fuse", "bandwidth": 1.0}, "'fuse' takes several of its own"),
    ({"statistic": "mmd_linear", "b": Y[:3]}, "b has 3 points; statistic 'mmd_linear' needs 4"),
    ({"bandwidth": "best"}, "bandwidth is 'best'"),
    ({"bandwidth": "tau", "a": X[:7]}, "a has 7 points; to choose a bandwidth"),
    ({"bandwidth": "ard", "kernel": "laplacian"}, "gaussian kernel of rows; .* 'laplacian'"),
    ({"bandwidth": "ard", "statistic": "me"}, "the statistic 'me'"),
    ({"null": "wild_bootstrap"}, "it needs one"),
    ({**SERIES, "null": "permutation"}, "correlation_length is 3.0 and null 'permutation'"),
    ({**SERIES, "bandwidth": "tau"}, "bandwidth is 'tau'; of a series"),
]
LOCATIONS = [
    ({"statistic": "me", "a": X[:2], "b": Y[:3]}, "5 units; 'me' at 5 locations needs 8"),
    ({"statistic": "me", "bandwidth": 1e-9}, "features at the locations are the same"),
    (learning(locations=[[1.0]]), "locations have 1 coordinates, the rows 2"),
    (learning(n_locations=2, locations=[[1.0]]), "expected 2 lists of finite numbers"),
    (learning(learn=0.9), "learn=0.9 leaves 9 of 9 units"),
    ({**learning(learn=0.5), "kernel": "matern"}, "learn is for the gaussian kernel; kernel is"),
]


def compare(a=X, b=Y, statistic=None, **more):
    return two_sample_test(
        a, b, statistic=statistic() if callable(statistic) else statistic, **more
    )


@pytest.mark.parametrize(("change", "message"), [*SAMPLES, *UNITS, *STATISTICS, *LOCATIONS])
def test_refusals(change, message):
    with pytest.raises(BagbasisError, match=message):
        compare(**change)
