"""`ShrunkEmbedding` against matrices, and what it does for bags of unequal sizes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.stats import norm
from sklearn.preprocessing import StandardScaler

from bagbasis import (
    Bags,
    CoefficientPCA,
    DoubleBasisRegressor,
    EmbeddingUnion,
    ModelError,
    MomentsEmbedding,
    ParameterError,
    PointTransformer,
    ProjectionEmbedding,
    RandomFourierFeatures,
    ShrunkEmbedding,
    SlicedWassersteinEmbedding,
    load_model,
)
from bagbasis.embeddings.composed.shrunk import SEED
from bagbasis.models.fitting.bag_noise import N_SIGN_ROWS, bag_variances
from tests.oracles.labelled import stored
from tests.oracles.planned import FeatureMap
from tests.oracles.shrunk import shrink, variances_of_means

RNG = np.random.default_rng(7)


def mixtures(n, rng, low=5, high=500):
    """Bags of mixtures in the plane, and the spread of their first coordinate."""
    sizes = np.exp(rng.uniform(np.log(low), np.log(high), n)).round().astype(int)
    bags, labels = [], []
    for size in sizes:
        k = rng.integers(1, 6)
        centres, width = rng.uniform(0.15, 0.85, (k, 2)), rng.uniform(0.03, 0.12)
        shares = rng.dirichlet(np.full(k, 3.0))
        drawn = centres[rng.choice(k, size, p=shares)] + width * rng.normal(size=(size, 2))
        bags.append(np.clip(drawn, 0, 1))
        mean = shares @ centres[:, 0]
        labels.append(np.sqrt(width**2 + shares @ (centres[:, 0] - mean) ** 2))
    return Bags.from_list(bags), np.array(labels)


BAGS, Y = mixtures(60, RNG, 1, 40)


def halves_of(inner, bags):
    """Yield the embeddings of two halves of each bag of two points, as the library draws them."""
    rng = np.random.Generator(np.random.Philox(SEED))
    for bag in bags:
        if len(bag) > 1:
            order = np.argsort(rng.random(len(bag)))
            parts = bag[order[: len(bag) // 2]], bag[order[len(bag) // 2 :]]
            yield [(inner.transform([part])[0], len(part)) for part in parts]


@pytest.mark.parametrize(
    "inner",
    [ProjectionEmbedding(n_per_dim=4), SlicedWassersteinEmbedding(n_directions=4, n_quantiles=3)],
    ids=str,
)
def test_against_matrices(inner):
    inner.set_params(dtype="float64", box=[(0, 1)] * 2)
    rows = inner.transform(BAGS)
    result = variances_of_means(rows, BAGS.sizes, halves_of(inner, BAGS))
    shrunk = ShrunkEmbedding(type(inner)(**{**inner.get_params(), "box": None}), dtype="float64")
    shrunk.set_params(box=[(0, 1)] * 2)
    spec = shrunk.fit(BAGS).spec_
    for got, expected in zip(spec.arrays().values(), result, strict=True):
        np.testing.assert_allclose(got.ravel(), expected, rtol=1e-9, atol=1e-15)
    deviations = spec.deviations(BAGS.sizes)
    for i, row in enumerate(shrunk.transform(BAGS)):
        if (result[1] + result[2] > 0).all():
            mean, covariance = shrink(rows[i], BAGS.sizes[i], *result)
            np.testing.assert_allclose(row, mean, atol=1e-9)
            np.testing.assert_allclose(deviations[i], np.sqrt(np.diag(covariance)), atol=1e-9)


@pytest.mark.long
@given(st.lists(st.integers(1, 9), min_size=2, max_size=12), st.integers(0, 99))
def test_between_the_bag_and_the_mean(sizes, seed):
    """Each number lies between the mean's and the bag's; nothing is NaN, for any sizes."""
    rng = np.random.default_rng(seed)
    bags = [rng.random((n, 2)) for n in sizes]
    box = [(0, 1)] * 2
    rows = MomentsEmbedding(box=box, dtype="float64").fit_transform(bags)
    shrunk = ShrunkEmbedding(MomentsEmbedding(), box=box, dtype="float64").fit(bags)
    mean = shrunk.spec_.arrays()["shrunk_mean"]
    got = shrunk.transform(bags)
    low, high = np.minimum(rows, mean), np.maximum(rows, mean)
    assert ((low - 1e-12 <= got) & (got <= high + 1e-12)).all()


def test_cut_of_the_sample_is_of_no_account(tmp_path):
    """A store, read in runs, decides what its bags in memory do."""
    store = stored(tmp_path / "s.zarr", list(BAGS), Y)
    shrunk = ShrunkEmbedding(ProjectionEmbedding(n_per_dim=4))
    box = store.box.bounds
    assert shrunk.fit(store).spec_ == shrunk.set_params(box=box).fit(BAGS).spec_


def test_dropped_points_do_not_count():
    """With out_of_box="drop" a bag has the points that are inside."""
    box = [(0.0, 0.6), (0.0, 1.0)]
    inside = [bag[bag[:, 0] <= 0.6] for bag in BAGS]
    selected = [i for i, bag in enumerate(inside) if len(bag)]
    shrunk = ShrunkEmbedding(MomentsEmbedding(), out_of_box="drop", box=box, dtype="float64")
    shrunk.fit(BAGS[selected])
    np.testing.assert_allclose(
        shrunk.transform(BAGS[selected]),
        shrunk.transform([inside[i] for i in selected]),
        atol=1e-12,
    )


def test_variance_of_a_linear_model_is_exact():
    """It is Σ ψ² V for an embedding no longer than the draws, and zero without shrinkage."""
    shrunk = ShrunkEmbedding(MomentsEmbedding(), dtype="float64").fit(BAGS)
    features, psi = FeatureMap(shrunk.spec_, None), RNG.normal(size=(5, 1))
    rows = shrunk.transform(BAGS)
    assert shrunk.spec_.n_features == 5 <= N_SIGN_ROWS
    result = bag_variances(features, BAGS, rows, lambda z: z @ psi)
    expected = shrunk.spec_.deviations(BAGS.sizes) ** 2 @ psi**2
    np.testing.assert_allclose(result, expected, rtol=1e-9)
    plain = FeatureMap(shrunk.spec_.embedding, None)
    assert (bag_variances(plain, BAGS, rows, lambda z: z @ psi) == 0).all()


def test_variance_follows_the_slopes():
    """With random features it is about Σ (∂f/∂a)² V, by differences one number at a time."""
    shrunk = ShrunkEmbedding(ProjectionEmbedding(n_per_dim=7), dtype="float64").fit(BAGS)
    second = RandomFourierFeatures(n_features=256, scale=4.0).fit(shrunk.transform(BAGS)).spec_
    features, psi = FeatureMap(shrunk.spec_, second), RNG.normal(size=(256, 1))
    rows = shrunk.transform(BAGS)

    def predict(z):
        return z @ psi

    values = bag_variances(features, BAGS, rows, predict)[:, 0]
    deviations, expected = shrunk.spec_.deviations(BAGS.sizes), np.zeros(len(BAGS))
    ends = np.empty((2, len(BAGS), 256))
    for j in range(rows.shape[1]):
        step = np.zeros_like(rows)
        step[:, j] = 1e-3 * deviations[:, j]
        features.features_of(rows + step, ends[0])
        features.features_of(rows - step, ends[1])
        expected += (((ends[0] - ends[1]) @ psi)[:, 0] / 2e-3) ** 2
    # 49 numbers share 32 columns of signs: some pairs are not told apart
    assert 0.6 < np.median(values / expected) < 1.6
    assert np.corrcoef(np.log(values), np.log(expected))[0, 1] > 0.9


def test_saved_and_described(tmp_path):
    """Arrays, the factor of the variance, points on a scale of their own: the same predictions."""
    inner = ShrunkEmbedding(CoefficientPCA(MomentsEmbedding(), n_components=3))
    embedding = PointTransformer(StandardScaler(), inner)
    second = RandomFourierFeatures(n_features=64)
    model = DoubleBasisRegressor(embedding, second, uncertainty=True, alpha=0.1).fit(BAGS, Y)
    assert "shrunk by bag size" in model.features_.embedding.describe().text
    assert model.model_.posterior.of_bags != [1.0]
    model.save(str(tmp_path / "m.zarr"))
    again = load_model(str(tmp_path / "m.zarr"))
    for a, b in zip(
        model.predict(BAGS, return_std=True), again.predict(BAGS, return_std=True), strict=True
    ):
        np.testing.assert_array_equal(a, b)
    state = model.model_.state()
    state.arrays["between"] = state.arrays["between"] * 2
    with pytest.raises(ParameterError, match="shrunk embeddings are not those"):
        type(model.model_).from_state(state, type(model.model_.outcome), "float32")


@pytest.mark.parametrize("join", ["sum", "product"])
def test_a_union_shrinks_in_its_blocks(join):
    union = EmbeddingUnion([MomentsEmbedding(), ProjectionEmbedding(n_per_dim=3)], join=join)
    shrunk = ShrunkEmbedding(union).fit(BAGS).spec_
    assert shrunk.blocks == shrunk.embedding.blocks
    assert (len(shrunk.blocks) == 2) == (join == "sum")


def test_small_bags_are_less_certain():
    model = DoubleBasisRegressor(
        ShrunkEmbedding(MomentsEmbedding()), RandomFourierFeatures(n_features=64), uncertainty=True
    ).fit(BAGS, Y)
    bag = BAGS[int(BAGS.sizes.argmax())]
    _, of_few = model.predict([bag[:3]], return_std=True)
    _, of_many = model.predict([np.repeat(bag[:3], 200, axis=0)], return_std=True)
    assert of_few > of_many
    plain = DoubleBasisRegressor(ShrunkEmbedding(MomentsEmbedding()), alpha=0.1).fit(BAGS, Y)
    with pytest.raises(ModelError, match="uncertainty=True"):
        plain.predict(BAGS, return_std=True)


def judged(embedding, fitted, new):
    """Return RMSE, log loss and the coverage of 90 % in each fifth of the sizes."""
    second = RandomFourierFeatures(n_features=512, scale_multiplier=2.0)
    # with the penalty of GCV; folds leave less for shrinking to gain
    model = DoubleBasisRegressor(embedding, second, alpha="gcv", uncertainty=True).fit(*fitted)
    predicted, deviation = model.predict(new[0], return_std=True)
    errors = np.abs(predicted - new[1])
    inside = errors < norm.ppf(0.95) * deviation
    fifth = np.searchsorted(np.quantile(new[0].sizes, [0.2, 0.4, 0.6, 0.8]), new[0].sizes)
    coverage = np.bincount(fifth, inside) / np.bincount(fifth)
    loss = -norm.logpdf(errors, scale=deviation).mean()
    return np.sqrt(np.mean(errors**2)), loss, coverage


@pytest.mark.long
def test_mixtures_of_5_to_500_points():
    """Lower error and log loss, and coverage that is more even over the sizes."""
    rng = np.random.default_rng(1)
    fitted, new = mixtures(1000, rng), mixtures(1000, rng)
    inner = SlicedWassersteinEmbedding(n_directions=16)
    error, loss, coverage = judged(inner, fitted, new)
    shrunk_error, shrunk_loss, shrunk_coverage = judged(ShrunkEmbedding(inner), fitted, new)
    assert shrunk_error < 0.97 * error
    assert shrunk_loss < loss - 0.1
    assert np.ptp(shrunk_coverage) < 0.5 * np.ptp(coverage)
    assert abs(shrunk_coverage - 0.9).max() < 0.06


@pytest.mark.long
def test_auto_shrinks_where_it_helps():
    """By size, where sizes differ; bags of one size are not shrunk, and keep their errors."""
    rng = np.random.default_rng(2)
    bags, y = mixtures(300, rng)
    report = DoubleBasisRegressor().fit(bags, y).report_["choice"]
    tried = {item["name"]: item["error"] for item in report["tried"]}
    shrunk = [name for name in tried if "shrunk" in name]
    assert shrunk
    assert "shrunk" in report["chosen"]
    equal = Bags.from_list([bag[:20] for bag in bags if len(bag) >= 20])
    labels = y[bags.sizes >= 20]
    report = DoubleBasisRegressor().fit(equal, labels).report_["choice"]
    assert not [item["name"] for item in report["tried"] if "shrunk" in item["name"]]
