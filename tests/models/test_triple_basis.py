"""`TripleBasisRegressor`: against Double-Basis fits, known densities, and itself on stores."""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis import (
    BagError,
    Bags,
    BagStore,
    Box,
    DataError,
    DoubleBasisRegressor,
    HDDEmbedding,
    ModelError,
    ParameterError,
    ProjectionEmbedding,
    RandomFourierFeatures,
    Responses,
    TripleBasisRegressor,
    load_model,
)
from bagbasis.datasets import DensityMapping
from bagbasis.datasets.density_mapping import mapped
from bagbasis.densities import Densities
from tests.models.splits import validating
from tests.oracles import series
from tests.oracles.hdd import midpoints
from tests.oracles.labelled import labelled_bags
from tests.oracles.planned import set_solution
from tests.workers import two_workers

N = 80
BAGS, _ = labelled_bags(N, most=25)
QUERIES, _ = labelled_bags(9, seed=5)
RESPONSES = [None if i % 5 == 4 else 1 - bag[:, :1] for i, bag in enumerate(BAGS)]
KNOWN = [i for i in range(N) if RESPONSES[i] is not None]
FIRST, THIRD = ProjectionEmbedding(n_per_dim=4), ProjectionEmbedding(n_per_dim=6)


def regressor(alpha=1e-2, precision="float64", third=THIRD, **options):
    second = RandomFourierFeatures(n_features=64, scale=0.7)
    return TripleBasisRegressor(
        FIRST, second, response_embedding=third, alpha=alpha, precision=precision, **options
    )


def response_coefficients(responses, n=6):
    indices = series.index_set_by_loop(1, n, None, "cosine")
    return series.project_by_loop(responses, indices, "cosine", (0,), (1,), marginals=1)[0]


def store_of(url, bags=BAGS, responses=RESPONSES, **options):
    store = BagStore.create(url, 2, response_dims=1, dtype=np.float64, **options)
    return store.append(bags, responses=responses)


@pytest.fixture(scope="module")
def mapping():
    """Training and test bags of a known map of densities, and the true responses on a grid."""
    train, test = (
        [DensityMapping(seed=seed).response_block(i) for i in range(n)]
        for seed, n in ((0, 8), (1, 1))
    )
    at = 2 * midpoints(64, 2) - 0.5
    return train, test[0], at, mapped(DensityMapping(seed=1).mixtures(0)).at(at)


def fitted(blocks, n, **options):
    """The 3BE of the first n bags of a known map."""
    bags = [bag for block in blocks for bag in block.bags][:n]
    responses = [bag for block in blocks for bag in block.responses.present][:n]
    box = DensityMapping.box
    return TripleBasisRegressor(
        ProjectionEmbedding(max_norm=8.0, box=box),
        RandomFourierFeatures(n_features=1024),
        response_embedding=ProjectionEmbedding(max_norm=12.0, box=box),
        **options,
    ).fit(bags, responses)


@pytest.mark.parametrize("alpha", [1e-3, 0.5])
def test_is_as_many_double_basis_fits(alpha):
    """r outputs are r separate ridge fits to 1e-10, bags without a response left out."""
    model = regressor(alpha).fit(BAGS, RESPONSES)
    targets = response_coefficients([RESPONSES[i] for i in KNOWN])
    predicted = model.predict(QUERIES)
    assert predicted.shape == (9, 6)
    for j in range(6):
        single = DoubleBasisRegressor(
            FIRST, RandomFourierFeatures(n_features=64, scale=0.7), alpha=alpha, precision="float64"
        ).fit([BAGS[i] for i in KNOWN], targets[:, j])
        np.testing.assert_allclose(predicted[:, j], single.predict(QUERIES), rtol=0, atol=1e-10)
    np.testing.assert_allclose(model.mean_coefficients_, targets.mean(axis=0), atol=1e-14)
    assert model.report_["n_bags_unlabelled"] == N - len(KNOWN)


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_many_coefficients(precision):
    """A basis of hundreds of functions goes through matrix products, and gives the same."""
    third = ProjectionEmbedding(n_per_dim=60)
    model = regressor(1e-2, precision, third).fit(BAGS, RESPONSES)
    few = regressor(1e-2).fit(BAGS, RESPONSES)
    atol = 1e-10 if precision == "float64" else 2e-4
    np.testing.assert_allclose(model.predict(QUERIES)[:, :6], few.predict(QUERIES), atol=atol)


def test_penalty_is_chosen_in_l2_of_densities():
    """By Parseval the score is the sum of the coefficients' errors, not of their shares of the
    variance: the constant coefficient has none, and high frequencies are noise."""
    alphas = [1e-4, 1e-2, 1.0, 100.0]
    model = regressor("validation", alphas=alphas, validation_fraction=0.3).fit(BAGS, RESPONSES)
    targets = response_coefficients([RESPONSES[i] for i in KNOWN])
    held = validating(0.3, N)[KNOWN]
    part = [KNOWN[j] for j in np.flatnonzero(~held)]
    for alpha, score in zip(alphas, model.alpha_scores_, strict=True):
        single = regressor(alpha).fit([BAGS[j] for j in part], [RESPONSES[j] for j in part])
        error = single.predict([BAGS[KNOWN[j]] for j in np.flatnonzero(held)]) - targets[held]
        np.testing.assert_allclose(score, (error**2).sum(axis=1).mean(), rtol=1e-8)
    assert model.alpha_ == alphas[int(np.argmin(model.alpha_scores_))]


def test_densities_integrate_to_one():
    """Every prediction does, in the responses' own units, and with project=True is nowhere
    negative."""
    box = [(-3.0, 5.0)]
    model = regressor(1e-4, third=ProjectionEmbedding(n_per_dim=9, box=box)).fit(
        BAGS, [None if r is None else 8 * r - 3 for r in RESPONSES]
    )
    plain = model.predict_density(QUERIES, grid=400)
    valid = model.predict_density(QUERIES, grid=400, project=True)
    at = -3 + 8 * (np.arange(400) + 0.5)[:, None] / 400
    np.testing.assert_allclose(plain.mean(axis=1) * 8, 1, atol=1e-9)
    np.testing.assert_allclose(valid.mean(axis=1) * 8, 1, atol=1e-3)
    assert plain.min() < 0 <= valid.min()
    np.testing.assert_allclose(model.predict_density(QUERIES, at=at), plain, atol=1e-10)
    np.testing.assert_allclose(
        model.predict_density(QUERIES, at=at, project=True), valid, atol=1e-10
    )
    assert (model.predict_density(QUERIES, at=[[-3.1], [5.1]]) == 0).all()
    np.testing.assert_allclose(model.densities(QUERIES, project=True).integral(), 1, atol=1e-10)


@pytest.mark.long
def test_error_falls_with_the_number_of_bags(mapping):
    """A known map (turn, shear, blur) is learned: at 128, 1,024 and 8,192 bags the error to the
    true densities falls each time, well below that of the average density and of the series of
    the true response bag, and projecting on the valid densities never raises it."""
    train, test, at, truth = mapping
    errors, projected = [], []
    for n in (128, 1024, 8192):
        model = fitted(train, n)
        values = model.predict_density(test.bags, at=at)
        valid = model.densities(test.bags).valid(64).at(at)
        errors.append(((values - truth) ** 2).mean(axis=1))
        projected.append(((valid - truth) ** 2).mean(axis=1))
        assert (projected[-1] <= errors[-1] * (1 + 1e-9)).all()
    means = [error.mean() for error in errors]
    assert means[1] < 0.75 * means[0]
    assert means[2] < 0.75 * means[1]
    average = ((truth - truth.mean(axis=0)) ** 2).mean()
    assert means[2] < 0.1 * average
    assert means[2] < 0.5 * observed_error(test, at, truth)


def observed_error(test, at, truth):
    """Mean squared error of what the response bags themselves say, by the same basis."""
    first = ProjectionEmbedding(max_norm=12.0, box=DensityMapping.box, dtype="float64")
    observed = first.fit(test.responses.present)
    coefficients = observed.transform(test.responses.present)
    densities = Densities(
        coefficients, observed.spec_.indices, basis="cosine", box=observed.spec_.box
    )
    return ((densities.at(at) - truth) ** 2).mean()


@pytest.mark.long
def test_score(mapping):
    """Determination: 0 for the average density, 1 less the noise of the responses at best."""
    train, test, *_ = mapping
    model = fitted(train, 2048)
    score = model.score(test.bags, test.responses)
    assert 0.5 < score < 1
    set_solution(model, coef=np.zeros_like(model.coef_), intercept=model.mean_coefficients_)
    assert model.score(test.bags, test.responses) == pytest.approx(0, abs=1e-12)


@pytest.mark.long
def test_sample(mapping):
    """Samples follow the predicted density: their coefficients are those predicted."""
    train, test, *_ = mapping
    model = fitted(train, 1024)
    bags = model.sample(test.bags[:4], 20_000, seed=3)
    assert isinstance(bags, Bags)
    assert bags.sizes.tolist() == [20_000] * 4
    box = Box.of(DensityMapping.box, 2)
    again = ProjectionEmbedding(max_norm=3.0, box=box).fit(bags).transform(bags)
    density = model.densities(test.bags[:4], project=True)
    grid = density.on_grid(128)
    at = midpoints(128, 2)
    functions = np.stack(
        [
            series.product_function("cosine", alpha, at)
            for alpha in series.index_set_by_loop(2, None, 3.0, "cosine")
        ]
    )
    truth = grid.reshape(4, -1) * 4 @ functions.T / len(at)
    np.testing.assert_allclose(again, truth, atol=0.04)
    np.testing.assert_array_equal(model.sample(test.bags[:4], 20_000, seed=3).points, bags.points)


@pytest.mark.long
def test_store_cluster_and_file(tmp_path):
    """From a store, on two workers, and from disk: the same model and the same densities."""
    store = store_of(tmp_path / "s.zarr", chunk_points=60)
    inside = regressor().fit(BAGS, RESPONSES)
    truth = inside.predict(QUERIES)
    model = regressor().fit(store)
    np.testing.assert_allclose(model.predict(QUERIES), truth, rtol=0, atol=1e-12)
    with two_workers():
        other = regressor().fit(store, holdout=0.2)
        lazy = model.predict(store)
        at = np.array([[0.2], [0.7]])
        values = model.predict_density(store, at=at)
        grid = model.predict_density(store, grid=5, project=True)
        assert lazy.shape == (N, 6)
        assert values.shape == (N, 2)
        assert grid.shape == (N, 5)
        np.testing.assert_allclose(lazy.compute(), model.predict(BAGS), atol=1e-12)
        np.testing.assert_allclose(values.compute(), model.predict_density(BAGS, at=at), atol=1e-12)
        np.testing.assert_allclose(
            grid.compute(), model.predict_density(BAGS, grid=5, project=True), atol=1e-12
        )
    alone = regressor().fit(store, holdout=0.2)
    np.testing.assert_allclose(other.coef_, alone.coef_, rtol=0, atol=1e-9)
    assert alone.report_["n_bags_held_out"] > 0
    model.save(tmp_path / "m.zarr")
    loaded = load_model(tmp_path / "m.zarr")
    assert isinstance(loaded, TripleBasisRegressor)
    np.testing.assert_array_equal(loaded.predict(QUERIES), model.predict(QUERIES))
    assert loaded.response_embedding.get_params() == THIRD.get_params()
    assert loaded.score(store) == model.score(BAGS, RESPONSES)


def test_odd_responses(tmp_path):
    """A response of one point, and points outside the response box, count; the latter are
    clipped and reported."""
    responses = [np.array([[0.5]]) if i % 2 else np.array([[0.2], [1.5]]) for i in range(N)]
    store = store_of(tmp_path / "s.zarr", responses=responses, response_box=[(0, 1)])
    model = regressor().fit(store)
    assert model.report_["n_response_points_outside_box"] == N // 2
    assert np.isfinite(model.predict(QUERIES)).all()
    clipped = [np.clip(r, 0, 1) for r in responses]
    other = regressor(third=ProjectionEmbedding(n_per_dim=6, box=[(0, 1)])).fit(BAGS, clipped)
    np.testing.assert_allclose(model.predict(QUERIES), other.predict(QUERIES), atol=1e-12)
    refusing = ProjectionEmbedding(n_per_dim=6, out_of_box="error")
    with pytest.raises(DataError, match=r"s\.zarr, bag 0: .*1 points lie outside the box"):
        regressor(third=refusing).fit(store)


def test_index_sets_are_chosen():
    """ "auto" sizes of both bases come from leave-one-out scores of their own bags."""
    model = TripleBasisRegressor(
        ProjectionEmbedding(max_norm="auto"),
        RandomFourierFeatures(n_features=32),
        response_embedding=ProjectionEmbedding(n_per_dim="auto"),
    ).fit(BAGS, RESPONSES)
    alone = ProjectionEmbedding(n_per_dim="auto").fit([RESPONSES[i] for i in KNOWN])
    assert model.response_spec_.n_per_dim == alone.spec_.n_per_dim
    assert (
        model.features_.embedding.max_norm
        == ProjectionEmbedding(max_norm="auto").fit(BAGS).spec_.max_norm
    )


def narrow(n, width, n_points=100, seed=3):
    """Bags of one narrow mode each, and responses shifted by a quarter."""
    rng = np.random.default_rng(seed)
    centres = rng.uniform(0.2, 0.5, (n, 1, 1))
    bags = (centres + width * rng.normal(size=(n, n_points, 1))).clip(0, 1)
    return list(bags), list((bags + 0.25).clip(0, 1))


def test_response_basis_is_chosen_from_the_responses(tmp_path):
    """Narrow responses have as many functions as their leave-one-out score asks for."""
    X, Y = narrow(60, 0.03)
    second = RandomFourierFeatures(n_features=64)
    model = TripleBasisRegressor(random_features=second).fit(X, Y)
    best = ProjectionEmbedding(max_norm="auto").fit(Y).spec_
    assert model.response_spec_ == best
    assert best.n_features > 15
    store = BagStore.create(tmp_path / "s.zarr", 1, response_dims=1, dtype=np.float64)
    store = store.append(X, responses=Y)
    stored = TripleBasisRegressor(random_features=second).fit(store)
    assert stored.response_spec_.indices.tolist() == best.indices.tolist()
    np.testing.assert_allclose(stored.predict(X), model.predict(X), atol=1e-6)
    model.save(tmp_path / "m.zarr")
    loaded = load_model(tmp_path / "m.zarr")
    assert loaded.response_embedding is None
    np.testing.assert_array_equal(loaded.predict(X[:5]), model.predict(X[:5]))
    ten = TripleBasisRegressor(random_features=second, response_embedding=ProjectionEmbedding())
    assert ten.fit(X, Y).response_spec_ == ProjectionEmbedding().fit(Y).spec_
    at = np.linspace(0.01, 0.99, 99)[:, None]
    new, truth = narrow(20, 0.03, 20000, seed=5)
    histogram = np.array([np.histogram(y, 99, (0, 1), density=True)[0] for y in truth])
    gaps = [((m.predict_density(new, at=at) - histogram) ** 2).mean() for m in (model, ten)]
    assert gaps[0] < gaps[1] / 2


def test_many_responses_have_more_functions_than_each_by_itself(tmp_path):
    """The regression averages over responses, so that less of their noise counts."""
    X, Y = narrow(300, 0.03, 40)
    second = RandomFourierFeatures(n_features=64)
    model = TripleBasisRegressor(random_features=second).fit(X, Y)
    alone = TripleBasisRegressor(
        random_features=second, response_embedding=ProjectionEmbedding(max_norm="auto")
    ).fit(X, Y)
    assert model.response_spec_.n_features > alone.response_spec_.n_features
    at = np.linspace(0.01, 0.99, 99)[:, None]
    new, truth = narrow(20, 0.03, 20000, seed=5)
    histogram = np.array([np.histogram(y, 99, (0, 1), density=True)[0] for y in truth])
    gaps = [((m.predict_density(new, at=at) - histogram) ** 2).mean() for m in (model, alone)]
    assert gaps[0] < 0.9 * gaps[1]
    store = BagStore.create(tmp_path / "s.zarr", 1, response_dims=1, dtype=np.float64)
    stored = TripleBasisRegressor(random_features=second).fit(store.append(X, responses=Y))
    assert stored.response_spec_.indices.tolist() == model.response_spec_.indices.tolist()


@pytest.mark.parametrize(
    ("responses", "n_functions"),
    [
        (list(np.random.default_rng(0).beta(2, 3, (12, 50, 1))), 10),
        ([np.full((1, 1), 0.1 * i) for i in range(10)], 10),  # no score of one point
        (list(np.random.default_rng(0).beta(2, 3, (12, 50, 2))), 73),  # in two dimensions
    ],
)
def test_response_basis_has_at_least_ten_functions_per_dimension(responses, n_functions):
    """Neither smooth responses nor such of a single point lower the number of functions."""
    X = BAGS[: len(responses)]
    model = TripleBasisRegressor(random_features=False).fit(X, responses)
    assert model.response_spec_.n_features == n_functions


def test_response_basis_of_many_dimensions():
    """In seven dimensions, where ten functions each are too many, the basis has up to 1,024."""
    rng = np.random.default_rng(0)
    responses = list(rng.random((12, 20, 7)))
    model = TripleBasisRegressor(random_features=False).fit(BAGS[:12], responses)
    assert 8 < model.response_spec_.n_features <= 1024


def test_bad_input(tmp_path):
    """One clear error each: responses, third basis, dimensions, what to evaluate at."""
    with pytest.raises(DataError, match="responses are missing"):
        regressor().fit(BAGS)
    with pytest.raises(DataError, match="3 responses for 80 bags"):
        regressor().fit(BAGS, RESPONSES[:3])
    with pytest.raises(DataError, match="no bag has a response"):
        regressor().fit(BAGS, Responses.none(N, 1))
    with pytest.raises(DataError, match=r"response of bag 1, row 1: .*nan"):
        regressor().fit(BAGS[:2], [np.zeros((2, 1)), np.array([[0.1], [np.nan]])])
    store = store_of(tmp_path / "s.zarr")
    with pytest.raises(ParameterError, match="carries its responses"):
        regressor().fit(store, RESPONSES)
    without = BagStore.create(tmp_path / "t.zarr", 2).append(BAGS)
    with pytest.raises(DataError, match=r"t\.zarr: holds no responses"):
        regressor().fit(without)
    empty = BagStore.create(tmp_path / "e.zarr", 2, response_dims=1).append(BAGS)
    with pytest.raises(DataError, match=r"e\.zarr: no bag has a response"):
        regressor().fit(empty)
    thirds = HDDEmbedding(), ProjectionEmbedding(marginals=1), ProjectionEmbedding(bandwidth=0.1)
    for third in thirds:
        with pytest.raises(ParameterError, match="response_embedding has to be"):
            regressor(third=third).fit(BAGS, RESPONSES)
    model = regressor().fit(BAGS, RESPONSES)
    with pytest.raises(ModelError, match="bags of dimension 2, these have 3"):
        model.predict([np.zeros((4, 3))])
    for wrong in ({}, {"at": [[0.1]], "grid": 4}):
        with pytest.raises(ParameterError, match="at=… or the number of points"):
            model.predict_density(QUERIES, **wrong)
    strict = ProjectionEmbedding(n_per_dim=6, box=[(0, 0.5)], out_of_box="error")
    with pytest.raises(BagError, match="outside"):
        regressor(third=strict).fit(BAGS, RESPONSES)
