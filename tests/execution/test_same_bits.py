"""The same bits on any number of cores and workers, of whatever is fitted, predicted or tested.

Sizes are such that all that is cut is cut: products into panels and rows, factors into columns,
passes into tasks, kernels into parts.
"""

import hashlib

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from bagbasis import (
    BagStore,
    CoefficientPCA,
    DoubleBasisClassifier,
    DoubleBasisRegressor,
    EmbeddingUnion,
    HDDEmbedding,
    KernelSmoother,
    LearnedFourierFeatures,
    MeanMapEmbedding,
    NystroemFeatures,
    PointTransformer,
    ProjectionEmbedding,
    RandomFourierFeatures,
    TripleBasisRegressor,
    connect,
    cross_val_score,
    evaluate,
    features,
)
from bagbasis.hypotheses import fit_test, independence_test, two_sample_test
from bagbasis.models import stacking
from tests.oracles.labelled import labelled_bags, stored
from tests.passes import pass_limits, use_cores

pytestmark = pytest.mark.long

N, FEW, N_FEATURES = 1400, 700, 1100  # of features: more than a panel of their Gram matrix
BAGS, Y = labelled_bags(N, most=30)
Y = np.where(np.arange(N) % 11 == 0, np.nan, Y)
SECOND = RandomFourierFeatures(n_features=N_FEATURES, scale=1.0)
NARROW = RandomFourierFeatures(n_features=500, scale=1.0)  # BLAS has threads for its spectrum, too


def regressor(**arguments):
    bases = ProjectionEmbedding(n_per_dim=5), arguments.pop("second", SECOND)
    return DoubleBasisRegressor(*bases, **{"alpha": 1e-2, "precision": "float32", **arguments})


def fitted(model):
    return [model.coef_, model.intercept_, model.alpha_]


def rows(stores):
    """A fit to fewer bags than features, and what it predicts of a store and of a bag."""
    model = regressor(alpha="gcv").fit(stores["few"])
    return [*fitted(model), np.asarray(model.predict(stores["all"])), model.predict(BAGS[:1])]


def classified(stores):
    model = DoubleBasisClassifier(ProjectionEmbedding(n_per_dim=5), SECOND, alpha="validation")
    return fitted(model.fit(stores["classes"], holdout=0.2))


def densities(stores):
    model = TripleBasisRegressor(ProjectionEmbedding(n_per_dim=5), SECOND, alpha="gcv")
    return fitted(model.fit(stores["pairs"]))


def hdd(stores):
    second = NystroemFeatures(n_features=600)
    model = DoubleBasisRegressor(HDDEmbedding("js", n_per_dim=5, n_lambdas=3), second, alpha="gcv")
    return [*fitted(model.fit(stores["few"])), model.predict(BAGS[:300])]


def smoothed(stores):
    """Predictions, and errors that are computed on workers: each is a pass within a task."""
    model = KernelSmoother(ProjectionEmbedding(n_per_dim=5), bandwidth=1.0).fit(stores["few"])
    errors = evaluate(model, stores["few"], subset="all")
    return [np.asarray(model.predict(stores["few"])), errors.error]


def samples_differ(stores):
    result = two_sample_test(stores["all"], stores["few"], n_permutations=99)
    return [result.statistic, result.p_value]


def depends(stores):
    result = independence_test(
        BAGS[-FEW:], np.arange(FEW) % 3 + np.nan_to_num(Y[-FEW:]), n_permutations=99
    )
    return [result.statistic, result.p_value]


def fits(_):
    points = np.concatenate(BAGS[:60])
    result = fit_test(points, lambda x: -x, n_draws=99)
    return [result.statistic, result.p_value]


SERIES = ProjectionEmbedding(n_per_dim=3)
PARTS = [("map", MeanMapEmbedding(n_features=16)), ("cosines", SERIES)]
ROTATED = make_pipeline(FunctionTransformer(np.cbrt), PCA(2, whiten=True))
SMALL = {
    "product of kernels": (
        EmbeddingUnion(PARTS, join="product"),
        RandomFourierFeatures(n_features=32),
    ),
    "sum of kernels": (EmbeddingUnion(PARTS, join="sum"), RandomFourierFeatures(n_features=32)),
    "transformed points": (PointTransformer(ROTATED, SERIES), RandomFourierFeatures(n_features=32)),
    "components of sums": (
        CoefficientPCA(SERIES, n_components=4),
        RandomFourierFeatures(n_features=32),
    ),
    "components of rows": (
        CoefficientPCA(ProjectionEmbedding(n_per_dim=20), n_components=4),
        RandomFourierFeatures(n_features=32),
    ),
    "learned frequencies": (SERIES, LearnedFourierFeatures(n_features=12, n_sweeps=2)),
}


def small(name):
    """The case of a fit to the small store."""
    return lambda s: fitted(DoubleBasisRegressor(*SMALL[name], alpha=1e-2).fit(s["small"]))


def stacked(stores):
    """The default of `head="stack"`, and what it predicts of a store."""
    model = DoubleBasisRegressor(SERIES, RandomFourierFeatures(n_features=32), head="stack")
    model.fit(stores["small"])
    return [model.model_.trees.nodes, np.asarray(model.predict(stores["small"]))]


def folded(stores):
    """The coefficients and errors of each fold, and the intervals of a store."""
    model = DoubleBasisRegressor(SERIES, RandomFourierFeatures(n_features=32), alpha=1e-2)
    model.fit(stores["small"]).conformalize(stores["small"], cv=4)
    ends = map(np.asarray, model.predict_interval(stores["small"]))
    return [model.calibration_.coef, model.calibration_.errors, *ends]


CASES = {
    "exact": lambda stores: fitted(regressor(solver="cholesky").fit(stores["all"])),
    "gcv": lambda stores: fitted(regressor(alpha="gcv", solver="cholesky").fit(stores["all"])),
    "spectrum": lambda s: fitted(
        regressor(alpha=np.logspace(-6, 1, 9), second=NARROW).fit(s["all"])
    ),
    "cg": lambda stores: fitted(regressor(solver="cg").fit(stores["all"])),
    "rows": rows,
    "classifier": classified,
    "densities": densities,
    "hdd": hdd,
    "smoother": smoothed,
    "features": lambda s: [
        np.asarray(features(s["all"], ProjectionEmbedding(n_per_dim=5), SECOND))
    ],
    "folds": lambda stores: [cross_val_score(regressor(alpha="gcv"), stores["all"], cv=3)],
    "two samples": samples_differ,
    "dependence": depends,
    "goodness of fit": fits,
    **{name: small(name) for name in SMALL},
    "stack": stacked,
    "intervals of folds": folded,
}
# whose passes are those of others ("exact", "product of kernels") or go to no worker: in memory
NOT_ON_WORKERS = {"gcv", "spectrum", "sum of kernels", "dependence", "goodness of fit"}


@pytest.fixture(scope="module", autouse=True)
def many_tasks():
    """Small passes are cut into eight tasks, and forests are small."""
    with pass_limits(small_task_seconds=1e-9, small_tasks=8), pytest.MonkeyPatch.context() as patch:
        patch.setattr(stacking, "N_RANDOMISED", 20)
        yield


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stores")
    by_name = {"all": stored(folder / "all.zarr", BAGS, Y)}
    by_name["few"] = stored(folder / "few.zarr", BAGS[-FEW:], Y[-FEW:])
    by_name["small"] = stored(folder / "small.zarr", BAGS[1:181], Y[1:181])
    by_name["classes"] = stored(folder / "classes.zarr", BAGS, (Y > 0).astype(float))
    by_name["pairs"] = BagStore.create(folder / "pairs.zarr", 2, response_dims=1)
    by_name["pairs"].append(BAGS, responses=[bag[:, :1] for bag in BAGS])
    return by_name


def digest(arrays):
    """A digest of the bits, types and shapes."""
    result = hashlib.sha256()
    for item in map(np.asarray, arrays):
        result.update(f"{item.dtype} {item.shape}".encode())
        result.update(np.ascontiguousarray(item).tobytes())
    return result.hexdigest()


@pytest.fixture(scope="module")
def alone(stores):
    """What one core makes of each case, in this process."""
    with use_cores(1):
        return {name: digest(case(stores)) for name, case in CASES.items()}


@pytest.mark.parametrize("name", CASES)
def test_cores(name, stores, alone):
    """Three here; two in test_workers."""
    with use_cores(3):
        assert digest(CASES[name](stores)) == alone[name]


def test_workers(stores, alone):
    """Two of them, of two cores each."""
    arguments = {"n_workers": 2, "cores_per_worker": 2, "memory_limit": "1GiB"}
    expected = {name: bits for name, bits in alone.items() if name not in NOT_ON_WORKERS}
    with connect("local", **arguments), use_cores(2):
        by_name = {name: digest(CASES[name](stores)) for name in expected}
    assert by_name == expected
