"""Dependence as an objective: planted coordinates, slopes, subspaces and motions are found."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

from bagbasis import (
    BagbasisError,
    Bags,
    BagStore,
    DoubleBasisRegressor,
    EmbeddingUnion,
    MomentsEmbedding,
    ParameterError,
    ProjectionEmbedding,
)
from bagbasis.hypotheses import (
    IndependentSubspaces,
    Registration,
    derivative_norms,
    register_images,
    select_coordinates,
)
from bagbasis.hypotheses.objectives.criteria import hsic_lasso, mrmr, permutation
from bagbasis.hypotheses.objectives.variable_features import Moments, VariableFeatures, alignments
from bagbasis.jobs.experiments.data.planted import (
    amari,
    mixed_sources,
    planted_rows,
    warped_pair,
    wave_image,
)

CRITERIA = ("mrmr", "hsic_lasso", "permutation")


# ------------------------------------------------------------------------------------ dependence


def test_alignments_by_gram_matrices():
    """By centred Gram matrices of the features, pair by pair; less tr tr / n between variables."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((40, 3))
    x[:, 2] += x[:, 0] ** 2
    parts = [x[:, [j]] for j in range(3)]
    features = [VariableFeatures.of(part, 8, j)(part) for j, part in enumerate(parts)]
    moments = Moments.zeros(2, 24)
    moments.add(np.concatenate(features, axis=1), np.arange(40) % 2)
    blocks = [slice(8 * j, 8 * j + 8) for j in range(3)]
    for folds in ([0, 1], [1]):
        _, covariance, n = moments.centred(folds)
        result = alignments(covariance, blocks, n)
        saved = np.isin(np.arange(40) % 2, folds)
        H = np.eye(int(n)) - 1 / n
        grams = [H @ f[saved] @ f[saved].T @ H / n for f in features]
        for i, K in enumerate(grams):
            for j, L in enumerate(grams):
                value = (K * L).sum() - (0 if i == j else np.trace(K) * np.trace(L) / n)
                norm = np.linalg.norm(K) * np.linalg.norm(L)
                assert result[i, j] == pytest.approx(max(0, value) / norm, abs=1e-12)


def test_lasso_by_its_conditions():
    """The weights where the path stopped satisfy the conditions of the optimum for a penalty."""
    x, y, _ = planted_rows(300, 8, seed=1)
    parts = [*(x[:, [j]] for j in range(8)), y[:, None]]
    rows = np.concatenate([VariableFeatures.of(p, 10, 0)(p) for p in parts], axis=1)
    moments = Moments.zeros(1, rows.shape[1])
    moments.add(rows, np.zeros(300, dtype=int))
    blocks = [slice(10 * j, 10 * j + 10) for j in range(9)]
    chosen, beta = hsic_lasso(moments, [0], blocks, 3)
    _, covariance, n = moments.centred([0])
    aligned = alignments(covariance, blocks, n)
    slopes = aligned[-1, :-1] - aligned[:-1, :-1] @ beta
    active = beta > 0
    penalty = slopes[active].mean()
    np.testing.assert_allclose(slopes[active], penalty, atol=1e-6)
    assert (slopes[~active] <= penalty + 1e-9).all()
    assert set(np.flatnonzero(active)) >= set(chosen[:3])


def test_permutation_by_exchanges():
    """The rise from moments is that of exchanging rows, on the fold held out."""
    x, y, _ = planted_rows(400, 4, seed=2)
    parts = [*(x[:, [j]] for j in range(4)), y[:, None]]
    rows = np.concatenate([VariableFeatures.of(p, 6, 0)(p) for p in parts], axis=1)
    fold = np.arange(400) % 2
    moments = Moments.zeros(2, 30)
    moments.add(rows, fold)
    blocks = [slice(6 * j, 6 * j + 6) for j in range(5)]
    _, rises = permutation(moments, [0, 1], blocks, 2)
    expected = np.zeros(4)
    for held in (0, 1):
        train, test = rows[fold != held], rows[fold == held]
        z = train - train.mean(axis=0)
        gram = z[:, :24].T @ z[:, :24] / len(z)
        ridge = 1e-3 * np.trace(gram) / 24 * np.eye(24)
        w = np.linalg.solve(gram + ridge, z[:, :24].T @ z[:, 24:] / len(z))
        z = test - test.mean(axis=0)
        errors = z[:, 24:] - z[:, :24] @ w
        for j, b in enumerate(blocks[:4]):
            # every pair of rows exchanged with every other, itself among them
            own = z[:, b] @ w[b]
            rise = [((errors + own - own[r]) ** 2).sum() - (errors**2).sum() for r in range(200)]
            expected[j] += np.mean(rise)
    centred = rows[:, 24:] - rows[:, 24:].mean(axis=0)
    np.testing.assert_allclose(rises, expected / (centred**2).sum(), rtol=1e-9)


# ------------------------------------------------------------------------------------- selection


@pytest.mark.parametrize("criterion", CRITERIA)
def test_planted_coordinates(criterion):
    """They are found among many, in most folds; permutation shares importance among copies."""
    x, y, planted = planted_rows(600, 12, seed=3)
    result = select_coordinates(x, y, k=len(planted), criterion=criterion)
    assert set(result.indices) == set(planted)
    assert result.stability[list(planted)].min() >= 0.8
    assert result.names == tuple(f"x{j}" for j in result.indices)
    assert result.n == 600


def test_copies_are_left_out():
    """mRMR takes either a coordinate or its noisy copy; relevance alone would take both."""
    x, y, planted = planted_rows(600, 10, seed=4, copies=True)
    result = select_coordinates(x, y, k=len(planted))
    assert set(result.indices) == set(planted)
    by_relevance = np.argsort(-result.scores)[: len(planted)]
    assert set(by_relevance) != set(planted)


def test_mrmr_by_hand():
    """Each step by the definition, of alignments that the moments give."""
    x, y, _ = planted_rows(200, 7, seed=5, copies=True)
    parts = [*(x[:, [j]] for j in range(x.shape[1])), y[:, None]]
    rows = np.concatenate([VariableFeatures.of(p, 6, 0)(p) for p in parts], axis=1)
    J = x.shape[1]
    moments = Moments.zeros(1, rows.shape[1])
    moments.add(rows, np.zeros(200, dtype=int))
    blocks = [slice(6 * j, 6 * j + 6) for j in range(J + 1)]
    _, covariance, n = moments.centred([0])
    aligned = alignments(covariance, blocks, n)
    chosen, scores = mrmr(moments, [0], blocks, 3)
    np.testing.assert_array_equal(scores, aligned[-1, :-1])
    for step in range(3):
        best = max(
            (j for j in range(J) if j not in chosen[:step]),
            key=lambda j: aligned[-1, j] - np.mean([aligned[j, i] for i in chosen[:step]] or [0]),
        )
        assert chosen[step] == best


def _bags(n, rng):
    """Bags whose label is the spread of coordinate 1 of 4, or a class by the mean of it."""
    spread = rng.uniform(0.5, 2, n)
    bags = [rng.normal(size=(30, 4)) * [1, s, 1, 1] for s in spread]
    return Bags.from_list(bags), spread


def test_coordinates_of_bags_and_stores(tmp_path):
    """The marginal that carries the label, from memory and from a store; names of marginals."""
    bags, spread = _bags(150, np.random.default_rng(0))
    result = select_coordinates(bags, spread, k=1)
    assert result.names == ("x1",)
    store = BagStore.create(
        tmp_path / "a.zarr", n_dims=4, target_names=["s"], box=[(-9, 9)] * 4, dtype="float64"
    )
    labels = spread.copy()
    labels[3] = np.nan
    store.append(bags, targets={"s": labels})
    stored = select_coordinates(store, target="s", k=1)
    assert (stored.names, stored.n) == (("x1",), 149)
    classes = np.where(spread > 1.2, "wide", "narrow")
    assert select_coordinates(bags, classes, k=1).names == ("x1",)
    pairs = ProjectionEmbedding(n_per_dim=3, marginals=2)
    assert "x1" in select_coordinates(bags, spread, k=1, embedding=pairs).names[0].split("·")
    joined = EmbeddingUnion(
        [
            ("constant", ProjectionEmbedding(n_per_dim=1)),
            ("moments", MomentsEmbedding()),
        ]
    )
    assert select_coordinates(bags, spread, k=1, embedding=joined).names == ("moments",)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"X": np.ones((9, 2)), "y": np.ones(8)}, "y has 8 rows, X has 9"),
        ({"X": np.ones((9, 2)), "y": np.ones(9), "k": 3}, "there are 2 variables"),
        ({"X": np.ones((9, 2))}, "give y"),
        ({"X": np.eye(9), "y": np.arange(9.0), "k": 1}, "too few for 5 folds"),
    ],
)
def test_what_cannot_be_selected_from(arguments, message):
    """Each says what to change."""
    with pytest.raises(BagbasisError, match=message):
        select_coordinates(**arguments)


# ----------------------------------------------------------------------------------- derivatives


class Function:
    """A model of bags of one point."""

    def predict(self, X):
        x = X.points
        return np.sin(2 * x[:, 0]) + x[:, 1] * x[:, 2]


def test_norms_of_a_known_function():
    """By its gradient; x₁ and x₂ act together alone; x₃ does not matter."""
    x = np.random.default_rng(0).standard_normal((4000, 4))
    bags = Bags(x, np.arange(len(x) + 1))
    norms = derivative_norms(Function(), bags, n_draws=1)
    spread = x.std(axis=0)
    slopes = np.column_stack([2 * np.cos(2 * x[:, 0]), x[:, 2], x[:, 1], np.zeros(len(x))])
    exact = np.sqrt((slopes**2).mean(axis=0)) * spread
    np.testing.assert_allclose(norms.norms, exact, rtol=2e-3, atol=1e-12)
    assert set(norms.selected(3)) == {0, 1, 2}


class MeanSquare:
    """Prediction ‖mean‖² of a bag: the derivative by point i is 2 mean / n."""

    def predict(self, X):
        return (X.means**2).sum(axis=1)


def test_norms_of_bags_of_several_points():
    """n Σ_i (2 m_j / n)² = 4 m_j², in the mean over signs."""
    rng = np.random.default_rng(1)
    bags = Bags.from_list([rng.normal([3, 0.3], 1, (int(n), 2)) for n in rng.integers(5, 30, 40)])
    norms = derivative_norms(MeanSquare(), bags, n_draws=400, step=0.01)
    exact = np.sqrt((4 * bags.means**2).mean(axis=0)) * bags.points.std(axis=0)
    np.testing.assert_allclose(norms.norms, exact, rtol=0.05)


def test_norms_of_a_fitted_model():
    """For a Double-Basis regressor it finds the coordinate that carries the label, with errors."""
    bags, spread = _bags(150, np.random.default_rng(2))
    model = DoubleBasisRegressor(ProjectionEmbedding(n_per_dim=4, marginals=1)).fit(bags, spread)
    norms = derivative_norms(model, bags[:40], n_draws=1)
    assert norms.selected(1).tolist() == [1]
    assert (norms.standard_errors > 0).all()


# ------------------------------------------------------------------------------------- subspaces


@pytest.mark.parametrize("dims", [2, [3, 2, 1], None])
def test_subspaces(dims):
    """Planted ones are found, of given sizes or of what is linked."""
    sizes = [2, 2, 2] if dims is None or dims == 2 else dims
    x, mixing = mixed_sources(sizes, 4000, seed=0)
    model = IndependentSubspaces(dims).fit(x)
    assert [len(s) for s in model.subspaces_] == sizes
    assert amari(model.unmixing_ @ mixing, sizes) < 0.08
    sources = model.transform(x)
    np.testing.assert_allclose(np.cov(sources.T), np.eye(6), atol=0.02)
    between = model.dependence_[0, len(model.subspaces_[0]) :]
    assert between.max() < 0.01


@pytest.mark.parametrize(
    ("x", "dims", "message"),
    [
        (np.random.default_rng(0).random((50, 4)), 3, "do not add up"),
        (np.random.default_rng(0).random((5, 4)), None, "too few"),
        (np.outer(np.arange(50.0), [1, 2]), None, "determine each other"),
    ],
)
def test_what_has_no_subspaces(x, dims, message):
    """Each says why."""
    with pytest.raises(BagbasisError, match=message):
        IndependentSubspaces(dims).fit(x)


# ---------------------------------------------------------------------------------- registration


@pytest.mark.long
@pytest.mark.parametrize("measure", ["kcca", "hsic"])
def test_registration(measure):
    """A planted motion of an image with other intensities and a fifth of wild pixels."""
    fixed, moving, truth = warped_pair(64, 0.2, seed=1)
    result = register_images(fixed, moving, measure=measure)
    assert np.abs(np.array(result.shift) - truth["shift"]).max() < 0.5
    assert abs(result.angle - truth["angle"]) < 0.5
    assert abs(result.scale - truth["scale"]) < 0.02


@pytest.mark.long
def test_apply_brings_the_image_back():
    """Resampled on the reference's pixels, without outliers, it is the reference again."""
    fixed, moving, _ = warped_pair(64, 0.0, seed=2, same_intensities=True)
    result = register_images(fixed, moving)
    back = result.apply(moving, fixed.shape)
    inside = np.isfinite(back)
    assert inside.mean() > 0.6
    assert np.corrcoef(back[inside], fixed[inside])[0, 1] > 0.98


def test_places_turn_about_the_centre():
    """A quarter turn, to twice the size, and a shift."""
    motion = Registration(
        shift=(1.0, -2.0), angle=90.0, scale=2.0, dependence=0.0, measure="kcca"
    ).places((5, 3))
    np.testing.assert_allclose(motion[:, 2, 1], [3, -1])
    np.testing.assert_allclose(motion[:, 2, 2], [1, -1])
    np.testing.assert_allclose(motion[:, 0, 1], [3, -5])


def test_nothing_to_search():
    """Without freedom the motion is none."""
    image = wave_image(32, 0)
    result = register_images(image, image, max_shift=0, max_angle=0, max_scale=1)
    assert (result.shift, result.angle, result.scale) == ((0, 0), 0, 1)
    assert result.dependence > 0.99


@pytest.mark.parametrize(
    ("image", "message"),
    [
        (np.ones((20, 20)), "constant"),
        (np.ones((3, 20)), "8 by 8"),
        (np.ones(20), "one channel"),
        (np.diag([np.nan] * 20), "image holds NaN or infinity"),
        (np.diag([np.inf] * 20), "image holds NaN or infinity"),
    ],
)
def test_what_is_no_image(image, message):
    """Named by the argument."""
    with pytest.raises(BagbasisError, match=message):
        register_images(gaussian_filter(np.random.default_rng(0).random((20, 20)), 1), image)


def test_selected_count_is_checked():
    """More than there are."""
    x = np.random.default_rng(0).standard_normal((20, 4))
    norms = derivative_norms(Function(), Bags(x, np.arange(21)))
    with pytest.raises(ParameterError, match="k"):
        norms.selected(5)
