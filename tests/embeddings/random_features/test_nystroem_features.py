"""`NystroemFeatures`: the kernel between bags and landmarks, whitened; chosen, used and saved."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
import zarr
from hypothesis import example, given, settings, strategies as st

from bagbasis import (
    BagbasisWarning,
    DoubleBasisClassifier,
    DoubleBasisRegressor,
    EmbeddingUnion,
    ModelError,
    NystroemFeatures,
    ParameterError,
    ProjectionEmbedding,
    TripleBasisRegressor,
    load_model,
)
from bagbasis.embeddings.random_features.kernel_profiles import KERNELS_OF_DISTANCES
from bagbasis.embeddings.random_features.landmarks import LANDMARK_METHODS, choose_by_cholesky
from tests.oracles.labelled import labelled_bags, stored
from tests.oracles.nystroem import inner_products, kernel_by_loop

RNG = np.random.default_rng(0)
BAGS, _ = labelled_bags(90, most=12)
Y = np.array([bag[:, 0].mean() for bag in BAGS])
EMBEDDING = ProjectionEmbedding(n_per_dim=3)


@pytest.mark.long
@settings(max_examples=60, deadline=None)
@given(
    kernel=st.sampled_from(KERNELS_OF_DISTANCES),
    landmarks=st.sampled_from(LANDMARK_METHODS),
    dtype=st.sampled_from((np.float32, np.float64)),
    nu=st.sampled_from((0.5, 1.5, 2.5, 0.8)),
    n_inputs=st.integers(1, 6),
    n_features=st.integers(1, 25),
    n_distinct=st.integers(1, 25),
    multiplier=st.sampled_from((0.3, 1.0, 3.0)),
    offset=st.sampled_from((0.0, 100.0)),
    seed=st.integers(0, 2**64 - 1),
)
@example("matern", "rpcholesky", np.float64, 0.5, 2, 3, 3, 0.3, 0.0, 0)  # a cusp at equal rows
def test_inner_products(
    kernel, landmarks, dtype, nu, n_inputs, n_features, n_distinct, multiplier, offset, seed
):
    """They are those of the definition, for rows that repeat, too; no norm is above 1."""
    rng = np.random.default_rng(seed)
    distinct = offset + rng.standard_normal((n_distinct, n_inputs))
    rows = distinct[rng.integers(0, n_distinct, 25)].astype(dtype)
    model = NystroemFeatures(
        n_features=n_features,
        scale="median",
        scale_multiplier=multiplier,
        kernel=kernel,
        nu=nu,
        landmarks=landmarks,
        seed=seed,
    )
    z = model.fit_transform(rows)
    assert (z.dtype, z.shape) == (dtype, (25, model.spec_.n_features))
    assert 1 <= model.spec_.n_features <= n_features
    others = (offset + rng.standard_normal((9, n_inputs))).astype(dtype)
    both, spec = np.concatenate([rows, others]), model.spec_
    z = model.transform(both).astype(np.float64)
    truth = inner_products(both, spec.landmarks, kernel, spec.scale, nu)
    atol = 1e-8 if dtype == np.float64 else 2e-2 if offset else 2e-3
    np.testing.assert_allclose(z @ z.T, truth, atol=atol)
    assert (z**2).sum(axis=1).max() <= 1 + atol


def test_all_rows_as_landmarks_give_the_kernel():
    """Then nothing is approximated, but for ε; and few rows that repeat are few landmarks."""
    rows = RNG.standard_normal((40, 3))
    z = NystroemFeatures(n_features=40, scale=0.5).fit_transform(rows)
    np.testing.assert_allclose(z @ z.T, kernel_by_loop(rows, rows, "gaussian", 0.5), atol=1e-4)
    few = NystroemFeatures(n_features=40, scale=1.0).fit(np.repeat(rows[:7], 6, axis=0))
    assert few.spec_.n_features == 7
    assert list(few.get_feature_names_out()[:2]) == ["nystroem0", "nystroem1"]


@pytest.mark.parametrize(("precision", "atol"), [("float64", 1e-4), ("float32", 2e-3)])
@pytest.mark.parametrize("kernel", KERNELS_OF_DISTANCES)
def test_sum_of_kernels(kernel, precision, atol, tmp_path):
    """For a union that adds kernels, landmarks have the weighted mean of the parts' kernels."""
    parts = [("a", ProjectionEmbedding(n_per_dim=2)), ("b", EMBEDDING)]
    union = EmbeddingUnion(parts, join="sum", weights=[1, 3])
    model = DoubleBasisRegressor(
        union, NystroemFeatures(n_features=90, kernel=kernel), precision=precision
    )
    model.fit(BAGS, Y).save(tmp_path / "model.zarr")
    rows, second = union.fit_transform(BAGS).astype(float), model.features_.second
    z = np.empty((90, second.n_features), precision)
    second.transform(rows, z)
    weights = (0.25, 0.75)
    truth = sum(
        w * kernel_by_loop(part, part, kernel, second.scale * w**0.5)
        for w, part in zip(weights, np.split(rows, [4], axis=1), strict=True)
    )
    np.testing.assert_allclose(z @ z.T, truth, atol=atol)
    assert load_model(tmp_path / "model.zarr").features_ == model.features_


@pytest.mark.long
def test_pivots_follow_their_law():
    """The second pivot is drawn in proportion to what the first leaves of the diagonal."""
    rows = np.array([[0.0], [0.1], [1.0], [3.0]])
    k = kernel_by_loop(rows, rows, "gaussian", 1.0)
    counts = np.zeros((4, 4))
    for seed in range(4000):
        first, second = choose_by_cholesky(lambda a, b: k[a][:, b], 4, 2, seed, 0.0)
        counts[first, second] += 1
    remaining = 1 - k**2
    expected = 1000 * remaining / remaining.sum(axis=1, keepdims=True)
    assert (np.abs(counts - expected) <= 4.5 * np.sqrt(expected) + 1e-9).all()


@pytest.mark.parametrize("landmarks", LANDMARK_METHODS)
def test_landmarks_beat_rows_at_random(landmarks):
    """They leave less of the trace than as many evenly drawn rows, in clusters of unequal size."""
    centres = 5 * RNG.standard_normal((60, 2))
    rows = centres[np.minimum(RNG.geometric(0.1, 1000) - 1, 59)]
    rows = rows + 0.1 * RNG.standard_normal(rows.shape)

    def unexplained(model):
        return 1 - (model.transform(rows) ** 2).sum(axis=1).mean()

    ours = unexplained(NystroemFeatures(n_features=60, scale=0.5, landmarks=landmarks).fit(rows))
    drawn = [
        NystroemFeatures(n_features=60, scale=0.5).fit(RNG.permutation(rows)[:60]) for _ in range(5)
    ]
    assert ours < 0.6 * min(map(unexplained, drawn))


@pytest.mark.parametrize("landmarks", ["rpcholesky", "kmeans++"])
def test_of_fewer_bags_all_are_landmarks(landmarks):
    """With a warning that says how many; the model is that of as many as there are."""
    y = np.arange(30.0)
    few = NystroemFeatures(n_features=30, landmarks=landmarks)
    exact = DoubleBasisRegressor(EMBEDDING, few).fit(BAGS[:30], y)
    default = DoubleBasisRegressor(EMBEDDING, NystroemFeatures(landmarks=landmarks))
    with pytest.warns(BagbasisWarning, match="1,024 landmarks, and 30 bags were sampled"):
        default.fit(BAGS[:30], y)
    assert default.features_.second == exact.features_.second
    assert default.features_.n_features <= 30
    np.testing.assert_array_equal(default.coef_, exact.coef_)
    with warnings.catch_warnings():
        warnings.simplefilter("error", BagbasisWarning)
        DoubleBasisRegressor(EMBEDDING, few, alpha=0.1).fit(BAGS[:30], y)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_features": 10**7}, "choosing 10,000,000 landmarks needs .* take fewer features"),
        ({"nu": 0.1, "kernel": "matern"}, "nu is 0.1"),
    ],
)
def test_bad_parameters(params, message):
    """Each is named, before or as soon as there is a sample of bags."""
    model = DoubleBasisRegressor(EMBEDDING, NystroemFeatures(**{"n_features": 8, **params}))
    with pytest.raises(ParameterError, match=message):
        model.fit(BAGS, Y)


@pytest.mark.long
@pytest.mark.parametrize(
    "params",
    [
        {"alpha": "gcv"},
        {"alpha": 0.1, "solver": "cholesky", "precision": "float64"},
        {"alpha": 0.1, "solver": "cg"},
        {"alpha": "validation", "solver": "cg", "validation_fraction": 0.3},
    ],
)
def test_every_solver_learns_and_is_saved(tmp_path, params):
    """From a store as from memory; the loaded model has the same bits, and pickles have."""
    second = NystroemFeatures(n_features=20, scale_multiplier=0.8)
    store = stored(tmp_path / "bags.zarr", BAGS, Y)
    model = DoubleBasisRegressor(EMBEDDING, second, **params).fit(store)
    in_memory = DoubleBasisRegressor(EMBEDDING, second, **params).fit(BAGS, Y)
    np.testing.assert_allclose(model.predict(BAGS), in_memory.predict(BAGS), rtol=1e-3, atol=1e-4)
    assert np.mean((model.predict(BAGS) - Y) ** 2) < 0.5 * np.var(Y)
    model.save(tmp_path / "model.zarr")
    loaded = load_model(tmp_path / "model.zarr")
    assert loaded.features_ == model.features_
    assert loaded.random_features.get_params() == second.get_params()
    np.testing.assert_array_equal(loaded.predict(BAGS), model.predict(BAGS))
    again = pickle.loads(pickle.dumps(loaded))
    np.testing.assert_array_equal(again.predict(BAGS), model.predict(BAGS))


@pytest.mark.parametrize("alpha", [0.01, "validation"])
def test_whitening_that_is_left_to_the_sums(alpha, monkeypatch):
    """With many landmarks, sums are whitened, and rows that are kept are whitened one by one: the
    coefficients are the same."""
    spread = RNG.uniform(0.5, 2.0, 320)
    bags = [RNG.normal(0, s, (30, 2)) for s in spread]

    def fitted(keeps_rows):
        name = "bagbasis.models.fitting.fit_parameters.FitParameters.keeps_rows"
        monkeypatch.setattr(name, lambda *sizes: keeps_rows)
        second = NystroemFeatures(n_features=320)
        model = DoubleBasisRegressor("moments", second, alpha=alpha, precision="float64")
        return model.fit(bags, np.log(spread))

    rows, sums = fitted(True), fitted(False)
    assert sums.features_.second.completion
    assert rows.alpha_ == sums.alpha_
    np.testing.assert_allclose(rows.coef_, sums.coef_, atol=1e-6 * np.abs(sums.coef_).max())


def test_classes_and_densities(tmp_path):
    """The other estimators take them as well."""
    second = NystroemFeatures(n_features=30)
    classes = np.where(np.median(Y) < Y, "high", "low")
    model = DoubleBasisClassifier(EMBEDDING, second).fit(BAGS, classes)
    assert np.mean(model.predict(BAGS) == classes) > 0.8
    triple = TripleBasisRegressor(EMBEDDING, second, response_embedding=EMBEDDING).fit(
        BAGS, responses=BAGS
    )
    triple.save(tmp_path / "triple.zarr")
    value = load_model(tmp_path / "triple.zarr").predict(BAGS)
    np.testing.assert_array_equal(value, triple.predict(BAGS))


@pytest.mark.parametrize("array", ["landmarks", "whitening"])
def test_changed_landmarks_are_no_model(tmp_path, array):
    """Landmarks of another model do not pass for this one's."""
    url = tmp_path / "model.zarr"
    DoubleBasisRegressor(EMBEDDING, NystroemFeatures(n_features=8)).fit(BAGS, Y).save(url)
    values = zarr.open_group(str(url), mode="r+")[array]
    values[0, 0] += 1e-9
    with pytest.raises(ModelError, match=r"damaged model.*landmarks are not those"):
        load_model(url)


def test_rows_that_are_equal_have_one_landmark():
    """After it nothing is left of the diagonal, of which a second one would be drawn."""
    assert len(choose_by_cholesky(lambda a, b: np.ones((6, 6))[a][:, b], 6, 3, 0, 0.0)) == 1
