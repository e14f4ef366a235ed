"""`sample_weight=`: against dense weighted ridge and repeated bags, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from bagbasis import (
    Bags,
    BagStore,
    DataError,
    DoubleBasisClassifier,
    DoubleBasisRegressor,
    MomentsEmbedding,
    ParameterError,
    ProjectionEmbedding,
    RandomFourierFeatures,
    TripleBasisRegressor,
    evaluate,
    load_model,
)
from tests.oracles.labelled import labelled_bags, stored
from tests.oracles.planned import planned, posed
from tests.passes import pass_limits
from tests.workers import two_workers

N = 150
BAGS, Y = labelled_bags(N, most=12)
TIMES = np.random.default_rng(5).integers(0, 4, N).astype(float)
REAL = np.random.default_rng(6).gamma(1.0, 1e-3, N)
TARGETS = np.stack([Y, Y**2, TIMES, REAL, -TIMES, 0 * TIMES], axis=1)
NAMES = ["y", "z", "times", "real", "negative", "zero"]
REPEATED = [BAGS[i] for i in range(N) for _ in range(int(TIMES[i]))]
AGAIN = np.repeat(np.arange(N), TIMES.astype(int))
FORMS = {
    "rows": {"n_features": 400, "alpha": 0.02},
    "sums": {"n_features": 32, "alpha": 0.02},
    "least squares": {"n_features": 32, "alpha": 0},
    "cg": {"n_features": 64, "alpha": 0.02, "solver": "cg", "rank": 30},
}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    url = tmp_path_factory.mktemp("weights") / "s.zarr"
    return stored(url, BAGS, TARGETS, NAMES, chunk_points=300)


def small(kind=DoubleBasisRegressor, n_features=32, alpha=0.02, **parameters):
    bases = (
        ProjectionEmbedding(n_per_dim=4),
        RandomFourierFeatures(n_features=n_features, scale=2.0),
    )
    return kind(*bases, alpha=alpha, **{"precision": "float64", **parameters})


def features(model):
    return np.concatenate(
        [z for _, z, _ in model.features_.blocks(Bags.from_list(BAGS), "float64")]
    )


def objective(model, z, y, w):
    coef = np.atleast_2d(model.coef_)
    residuals = y.reshape(N, -1) - (z @ coef.T + model.intercept_)
    return w @ residuals**2 + getattr(model, "alpha_", model.alpha) * (coef**2).sum(axis=1)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("weights", ["times", "real"])
def test_equals_dense_weighted_ridge(store, form, weights):
    """scikit-learn's, of the same features; by rows, by sums and by conjugate gradients."""
    model = small(**FORMS[form]).fit(store, target=["y", "z"], sample_weight=weights)
    w = TARGETS[:, NAMES.index(weights)]
    z = features(model)
    if FORMS[form]["alpha"]:
        dense = Ridge(FORMS[form]["alpha"], solver="svd").fit(z, TARGETS[:, :2], w)
        expected = dense.predict(z)
    else:
        root = np.sqrt(w)[:, None]
        design = np.column_stack([np.ones(N), z])
        expected = design @ np.linalg.lstsq(root * design, root * TARGETS[:, :2], rcond=1e-10)[0]
    if form == "cg":  # which stops at 3e-4 of the objective
        ours, best = (objective(m, z, TARGETS[:, :2], w) for m in (model, dense))
        np.testing.assert_allclose(ours, best, rtol=1e-3)
    else:
        np.testing.assert_allclose(model.predict(BAGS), expected, rtol=0, atol=1e-8)
    memory = small(**FORMS[form]).fit(BAGS, TARGETS[:, :2], sample_weight=w)
    np.testing.assert_allclose(memory.predict(BAGS), model.predict(BAGS), rtol=0, atol=1e-8)
    assert model.report_["weight_fitted"] == pytest.approx(w.sum())
    assert model.report_["n_bags_fitted"] == np.count_nonzero(w)


@pytest.mark.parametrize(
    "kind", [DoubleBasisRegressor, DoubleBasisClassifier, TripleBasisRegressor]
)
@pytest.mark.parametrize("n_features", [32, 400], ids=["sums", "rows"])
def test_integer_weights_are_repeated_bags(kind, n_features):
    """To rounding, for each kind of label."""
    third = {"response_embedding": ProjectionEmbedding(n_per_dim=3)}
    model = small(kind, n_features, **(third if kind is TripleBasisRegressor else {}))
    labels = {
        DoubleBasisRegressor: Y,
        DoubleBasisClassifier: np.digitize(Y, np.quantile(Y, [0.3, 0.6])),
        TripleBasisRegressor: [1 - bag for bag in BAGS],
    }[kind]
    weighted = model.fit(BAGS, labels, sample_weight=TIMES)
    repeated = small(kind, n_features, **(third if kind is TripleBasisRegressor else {}))
    repeated.fit(REPEATED, [labels[i] for i in AGAIN])
    np.testing.assert_allclose(weighted.predict(BAGS), repeated.predict(BAGS), rtol=0, atol=1e-8)
    if kind is TripleBasisRegressor:
        np.testing.assert_allclose(weighted.mean_coefficients_, repeated.mean_coefficients_)


@pytest.mark.parametrize("solver", ["cholesky", "cg"])
@pytest.mark.parametrize("n_features", [32, 400], ids=["sums", "rows"])
def test_chosen_penalties(store, solver, n_features):
    """By weighted errors on bags held out; GCV too knows no unit of weights."""
    alphas = np.logspace(-4, 1, 6)
    if solver == "cholesky":
        for unit in (1.0, 1e3):
            model = small(alpha="gcv", n_features=n_features).fit(
                BAGS, Y, sample_weight=unit * REAL
            )
            if unit == 1.0:
                first = model
        assert model.alpha_ == pytest.approx(1e3 * first.alpha_)
        np.testing.assert_allclose(model.predict(BAGS), first.predict(BAGS), rtol=0, atol=1e-8)
    chosen = small(n_features=n_features, alpha="validation", alphas=alphas)
    chosen.set_params(validation_fraction=0.4, solver=solver)
    chosen.fit(store, target="y", sample_weight="times")
    apart = planned(chosen, posed(chosen, store, None, "y")).validation.members(0, N)
    z, scores = features(chosen), []
    for alpha in alphas:
        dense = Ridge(alpha, solver="svd").fit(z[~apart], Y[~apart], TIMES[~apart])
        errors = (dense.predict(z[apart]) - Y[apart]) ** 2
        mean = np.average(Y[apart], weights=TIMES[apart])
        variance = np.average((Y[apart] - mean) ** 2, weights=TIMES[apart])
        scores.append(np.average(errors, weights=TIMES[apart]) / variance)
    best = int(np.argmin(scores))
    assert chosen.alpha_ == pytest.approx(alphas[best])
    tolerance = 1e-8 if solver == "cholesky" else 1e-2
    assert chosen.alpha_scores_[best] == pytest.approx(scores[best], rel=tolerance)
    final = Ridge(alphas[best], solver="svd").fit(z, Y, TIMES)
    ours, least = (objective(model, z, Y, TIMES) for model in (chosen, final))
    np.testing.assert_allclose(ours, least, rtol=1e-8 if solver == "cholesky" else 1e-3)


@pytest.mark.long
def test_however_a_pass_is_cut(store, tmp_path):
    """In one task or many, here and on two workers, with checkpoints; and it is saved."""
    fit = {"target": "y", "sample_weight": "times"}
    whole = small().fit(store, **fit)
    with pass_limits(small_task_seconds=1e-9, small_tasks=16):
        cut = small().fit(store, checkpoints=tmp_path / "kept", **fit)
        with two_workers():
            there = small().fit(store, **fit)
    for model in (cut, there):
        np.testing.assert_allclose(model.coef_, whole.coef_, rtol=1e-9)
    single = small(precision="float32").fit(store, **fit)
    np.testing.assert_allclose(single.predict(BAGS), whole.predict(BAGS), atol=1e-3)
    whole.save(tmp_path / "m.zarr")
    assert load_model(tmp_path / "m.zarr").weights_ == {"column": "times", "by_class": None}


REFUSED = [
    (np.full(N, 1e200), DataError, r"is 1e\+200; expected 0, or from 1e-30 to 1e\+30"),
    (np.geomspace(1e-200, 1, N), DataError, "the weight of bag 0 is 1e-200"),
    ("negative", DataError, "negative: the weight of bag 0 is -"),
    ("zero", DataError, "weights of all labelled bags to fit are 0"),
    ("nothing", DataError, "no target 'nothing'"),
    (np.ones(N - 1), DataError, r"sample_weight has shape \(149,\)"),
    (np.where(np.arange(N) == 3, np.nan, 1.0), DataError, "sample_weight: bag 3 has none"),
    (np.where(np.arange(N) == 3, np.inf, 1.0), DataError, "the weight of bag 3 is inf"),
    (np.full(N, "x"), DataError, "sample_weight has dtype"),
]


@pytest.mark.parametrize(("weights", "kind", "message"), REFUSED)
@pytest.mark.parametrize("solver", ["cholesky", "cg"])
def test_refused(store, weights, kind, message, solver):
    """By name, with the bag."""
    with pytest.raises(kind, match=message):
        small(solver=solver).fit(store, target="y", sample_weight=weights)


def test_codes_of_classes_are_no_weights(tmp_path):
    """They are refused, as numbers that nobody has chosen."""
    made = BagStore.create(
        tmp_path / "s.zarr", 2, target_names=["y", "site"], class_names={"site": ["a", "b", "c"]}
    )
    made.append(BAGS[:30], {"y": Y[:30], "site": ["a", "b", "c"] * 10})
    with pytest.raises(DataError, match=r"sample_weight: 'site' has classes, \['a', 'b', 'c'\]"):
        small().fit(made, target="y", sample_weight="site")
    model = small().fit(made, target="y")
    with pytest.raises(DataError, match="sample_weight: 'site' has classes"):
        evaluate(model, made, sample_weight="site")


def test_refused_where_they_can_not_count():
    """A column of bags in memory, and penalties judged by valid densities."""
    with pytest.raises(ParameterError, match="sample_weight names a target of a BagStore"):
        small().fit(BAGS, Y, sample_weight="times")
    model = small(TripleBasisRegressor, alpha="projected")
    with pytest.raises(ParameterError, match="takes no sample_weight"):
        model.fit(BAGS, [1 - bag for bag in BAGS], sample_weight=TIMES)


KIND_OF_BAG = np.digitize(Y, np.quantile(Y, [0.7, 0.9]))
COUNTS = np.bincount(KIND_OF_BAG[TIMES > 0])  # bags of weight 0 are as removed
EACH = {"balanced": COUNTS.sum() / (3 * COUNTS), "mapping": np.array([1.0, 3.0, 0.0])}


@pytest.mark.parametrize(
    ("value", "each"), [("balanced", EACH["balanced"]), ({1: 3, 2: 0}, EACH["mapping"])]
)
def test_weights_of_classes(value, each, tmp_path):
    """They multiply those of the bags, and a saved model keeps them."""
    model = small(DoubleBasisClassifier, class_weight=value)
    model.fit(BAGS, KIND_OF_BAG, sample_weight=TIMES)
    by_bags = small(DoubleBasisClassifier)
    by_bags.fit(BAGS, KIND_OF_BAG, sample_weight=TIMES * each[KIND_OF_BAG])
    np.testing.assert_allclose(model.coef_, by_bags.coef_, rtol=0, atol=1e-9)
    np.testing.assert_allclose(model.weights_["by_class"], each)
    model.save(tmp_path / "m.zarr")
    again = load_model(tmp_path / "m.zarr")
    assert again.weights_ == model.weights_
    again.fit(BAGS, KIND_OF_BAG, sample_weight=TIMES)
    np.testing.assert_allclose(again.coef_, model.coef_)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("balance", "class_weight is 'balance'"),
        ({7: 1.0}, "class_weight has class 7"),
        ({1: -1.0}, r"class_weight is \{1: -1.0\}; expected"),
        ({0: 0, 1: 0, 2: 0}, None),
    ],
)
def test_weights_of_classes_are_refused(value, message):
    """By name; all zero as weights of bags are."""
    kind = DataError if message is None else ParameterError
    with pytest.raises(kind, match=message or "weights of all labelled bags to fit are 0"):
        small(DoubleBasisClassifier, class_weight=value).fit(BAGS, KIND_OF_BAG)


@pytest.mark.parametrize("times", [10, 1e6])
@pytest.mark.parametrize("stored", [False, True])
def test_bags_of_weight_0_are_as_removed(tmp_path, times, stored):
    rng = np.random.default_rng(0)
    s = rng.uniform(0.5, 3, 80)
    bags = [rng.normal(0, a, (30, 2)) for a in s]
    wild = [bag * times for bag in bags[:8]]
    y, weights = np.r_[s, [50.0] * 8], np.r_[np.ones(80), np.zeros(8)]

    def fit(some, labels, value):
        model = DoubleBasisRegressor(MomentsEmbedding(), alpha=1.0)
        if not stored:
            return model.fit(some, labels, sample_weight=value)
        store = BagStore.create(tmp_path / "s.zarr", 2, target_names=["y", "w"], overwrite=True)
        store.append(some, np.column_stack([labels, value]))
        return model.fit(store, target="y", sample_weight="w")

    expected, result = fit(bags, s, np.ones(80)), fit(bags + wild, y, weights)
    np.testing.assert_allclose(result.predict(bags), expected.predict(bags), rtol=1e-9)
    assert result.report_["n_bags_fitted"] == 80
    assert result.report_["n_bags_held_out"] == 0
    assert result.features_.embedding.box == expected.features_.embedding.box
