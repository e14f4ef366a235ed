"""scikit-learn's own checks: all pass where rows are taken, and tags say where bags are."""

from __future__ import annotations

import pytest
from sklearn.exceptions import SkipTestWarning
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator

from bagbasis import (
    DoubleBasisClassifier,
    DoubleBasisRegressor,
    KernelSmoother,
    LearnedFourierFeatures,
    NystroemFeatures,
    RandomFourierFeatures,
    StreamingRidge,
    TripleBasisRegressor,
    neural,
)
from bagbasis.densities import (
    DivergenceKernel,
    ExponentialFamilyDensity,
    PrecomputedNystroem,
    PSDRepair,
)
from bagbasis.embeddings import EMBEDDINGS, SeriesEmbedding
from bagbasis.hypotheses import IndependentSubspaces

OF_ROWS = {
    "ridge": StreamingRidge(),
    "ridge, gcv": StreamingRidge("gcv"),
    "ridge, folds": StreamingRidge("folds"),
    "Fourier": RandomFourierFeatures(),
    "Fourier, orthogonal": RandomFourierFeatures(n_features=6, scale=2.0, orthogonal=True),
    "Fourier, hadamard": RandomFourierFeatures(n_features=64, structure="hadamard"),
    "Nyström": NystroemFeatures(),
    "Nyström, one": NystroemFeatures(n_features=1),
    "Nyström, matern": NystroemFeatures(n_features=1, kernel="matern"),
    "Nyström, k-means++": NystroemFeatures(n_features=1, landmarks="kmeans++"),
    "learned": LearnedFourierFeatures(n_features=8, n_sweeps=2),
    "density": ExponentialFamilyDensity(n_features=10, bandwidth=1.0, alpha=0.1),
    "density, chosen": ExponentialFamilyDensity(n_features=4, n_folds=2),
    "subspaces": IndependentSubspaces(n_features=4),
    **{f"repair, {method}": PSDRepair(method) for method in ("clip", "flip", "shift", "square")},
    **{f"matrix, {method}": PrecomputedNystroem(method) for method in ("standard", "flip", "clip")},
}
NETWORKS = (
    neural.BagDensity,
    neural.DeepSetsClassifier,
    neural.DeepSetsRegressor,
    neural.NextPointRegressor,
    neural.SequenceClassifier,
    neural.SequenceRegressor,
    neural.TANDensity,
)
OF_BAGS = (
    DoubleBasisRegressor,
    DoubleBasisClassifier,
    TripleBasisRegressor,
    KernelSmoother,
    DivergenceKernel,
    SeriesEmbedding,
    *NETWORKS,
)

# Each with its reason; one that passes makes the test fail, and goes from here.
VECTOR = {"check_fit1d": "a vector holds points in one dimension"}
EXPECTED: dict[str, dict[str, str]] = {
    "density": VECTOR,
    "density, chosen": VECTOR,
    "subspaces": VECTOR,
    "matrix, standard": dict.fromkeys(
        ("check_positive_only_tag_during_fit", "check_estimators_dtypes"), "an indefinite matrix"
    ),
}
NOT_HERE = {"check_array_api_input"}  # needs SCIPY_ARRAY_API in the environment


def outcomes(estimator, expected):
    """Names of checks by how they ended."""
    result = check_estimator(estimator, expected_failed_checks=expected, on_skip=None, on_fail=None)
    ended = {}
    for item in result:
        ended.setdefault(item["status"], set()).add(item["check_name"])
    return ended


@pytest.mark.long
@pytest.mark.parametrize("name", OF_ROWS)
def test_estimators_of_rows(name):
    """Every check passes, but for those whose reason is listed, and these do fail."""
    expected = EXPECTED.get(name, {})
    ended = outcomes(OF_ROWS[name], expected)
    assert ended.get("failed", set()) == set()
    assert ended.get("xfail", set()) == set(expected)
    assert ended.get("skipped", set()) <= NOT_HERE
    assert len(ended["passed"]) > 35


@pytest.mark.parametrize("kind", [*OF_BAGS, *EMBEDDINGS.values()])
def test_estimators_of_bags(kind):
    """A bag is no row: the tag says so, and what needs no rows passes."""
    assert not get_tags(kind()).input_tags.two_d_array
    with pytest.warns(SkipTestWarning, match="requires input"):
        ended = outcomes(kind(), {})
    assert ended.keys() == {"passed"}
