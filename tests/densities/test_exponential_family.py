"""`ExponentialFamilyDensity` by explicit derivatives and by the closed form of a kernel matrix."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bagbasis import BagbasisError, Bags, BagStore, DataError
from bagbasis.densities import ExponentialFamilyDensity
from bagbasis.densities.exponential_family import choose
from bagbasis.densities.fisher_sums import FisherSpectrum
from bagbasis.hypotheses import fit_test
from tests.oracles import score_matching


def two_modes(n, d, seed=0):
    """An even mixture of two normal distributions, shape (n, d), in units that differ."""
    rng = np.random.default_rng(seed)
    side = rng.choice([-1.0, 1.0], (n, 1))
    return (1.5 * side + rng.standard_normal((n, d))) * (1 + 2 * np.arange(d)) + 3


def true_score(x):
    """∇ log of the density of `two_modes`."""
    scale = 1 + 2 * np.arange(x.shape[1])
    z = (x - 3) / scale
    return (1.5 * np.tanh(1.5 * z.sum(axis=1))[:, None] - z) / scale


@pytest.mark.parametrize("d", [1, 2, 4])
def test_coefficients_by_explicit_derivatives(d):
    """One width, one penalty; base distribution with the covariance of the points."""
    x = two_modes(40, d)
    model = ExponentialFamilyDensity(12, bandwidth=0.9, alpha=0.01, n_folds=3, seed=5).fit(x)
    z = (x - x.mean(axis=0)) / x.std(axis=0)
    spectrum = FisherSpectrum.draw(d, 6, 0.9, 5)
    covariance = np.cov(z.T, bias=True).reshape(d, d)
    theta = score_matching.feature_fit(
        z, *vars(spectrum).values(), 0.01, z.mean(axis=0), covariance
    )
    np.testing.assert_allclose(model.coefficients_, theta, rtol=1e-8, atol=1e-10)
    assert model.n_points_ == 40


@pytest.mark.parametrize("d", [1, 3, 8])
def test_features_are_of_the_gaussian_kernel(d):
    """Products of features are the kernel's values, and the mean of ‖ω‖⁴ is the spectrum's."""
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2, 30, d))
    spectrum = FisherSpectrum.draw(d, 2000, 1.5, 0)
    phi, psi = spectrum.features(x)
    exact = np.exp(-((x[:, None] - y) ** 2).sum(axis=2) / (2 * 1.5**2))
    gaps = phi @ spectrum.features(y)[0].T - exact
    assert (gaps**2).mean() ** 0.5 < (0.005 if d < 8 else 0.025)  # independent ones: .016
    np.testing.assert_allclose((phi**2).sum(axis=1), 1)
    np.testing.assert_allclose((psi**2).sum(axis=1), 1)
    fourth = (spectrum.amplitudes**2 * (spectrum.omega**2).sum(axis=0) ** 2).sum()
    assert fourth == pytest.approx(d * (d + 2) / 1.5**4, rel=0.03)


@pytest.mark.parametrize("d", [1, 3])
def test_score_is_the_slope_of_the_log_density(d):
    """By differences of both, and the objective of folds by its definition."""
    x = two_modes(60, d)
    model = ExponentialFamilyDensity(20, n_folds=2).fit(x)
    step = 1e-5
    for j in range(d):
        up, down = x.copy(), x.copy()
        up[:, j] += step
        down[:, j] -= step
        slope = (model.log_density(up) - model.log_density(down)) / (2 * step)
        np.testing.assert_allclose(model.log_density_gradient(x)[:, j], slope, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("alpha", "n_tried"), [("cv", 6), ([1e-9, 1e-7, 0.1], 3), ([1e-12, 1.0], 2)]
)
def test_penalties_that_are_asked_for_are_tried(alpha, n_tried):
    """By default those that 40 points can bear: a thousandth of a point's fraction and larger."""
    model = ExponentialFamilyDensity(8, bandwidth=1.0, alpha=alpha, n_folds=2).fit(two_modes(40, 1))
    assert len(model.widths_[0].divergences) == n_tried


def test_held_out_divergence_by_its_definition():
    """Fits to each half, judged on the other by slopes and curvatures at its points."""
    x = two_modes(30, 2)
    model = ExponentialFamilyDensity(8, bandwidth=1.0, alpha=[0.1, 1.0], n_folds=2).fit(x)
    z = (x - x.mean(axis=0)) / x.std(axis=0)
    spectrum = FisherSpectrum.draw(2, 4, 1.0, 0)
    omega, c = spectrum.omega, spectrum.amplitudes
    for alpha, message in zip((0.1, 1.0), model.widths_[0].divergences, strict=True):
        values = []
        for fold in (0, 1):
            rest, held = z[1 - fold :: 2], z[fold::2]
            mean, covariance = rest.mean(axis=0), np.cov(rest.T, bias=True)
            theta = score_matching.feature_fit(rest, omega, c, alpha, mean, covariance)

            def score(at, mean=mean, covariance=covariance, theta=theta):
                angle = at @ omega
                psi = np.concatenate([c * np.cos(angle), -c * np.sin(angle)], axis=1)
                slopes = (psi * theta) @ np.concatenate([omega, omega], axis=1).T
                return (mean - at) @ np.linalg.inv(covariance) + slopes

            values.append(
                score_matching.objective(score(held), score_matching.curvature(score, held))
            )
        assert message == pytest.approx(np.mean(values), rel=1e-5)


@pytest.mark.parametrize(("d", "alpha"), [(1, 0.003), (1, 0.03), (2, 0.1)])
def test_as_good_as_the_closed_form(d, alpha):
    """The Fisher divergence from the truth is within 2 % of that of the exact kernel's solution."""
    x, fresh = two_modes(200, d), two_modes(2000, d, seed=1)
    model = ExponentialFamilyDensity(1000, bandwidth=1.0, alpha=alpha).fit(x)
    scale = x.std(axis=0)
    z, new = ((part - x.mean(axis=0)) / scale for part in (x, fresh))
    covariance = np.cov(z.T, bias=True).reshape(d, d)
    exact = score_matching.KernelScore(z, z.mean(axis=0), covariance, 1.0, alpha)(new) / scale
    truth = true_score(fresh)

    def divergence(score):
        return (((score - truth) * scale) ** 2).sum(axis=1).mean()

    base = (z.mean(axis=0) - new) @ np.linalg.inv(covariance) / scale
    assert divergence(exact) < 0.5 * divergence(base)
    assert divergence(model.log_density_gradient(fresh)) == pytest.approx(
        divergence(exact), rel=0.02
    )


@pytest.mark.long
def test_choices_find_both_modes():
    """By default, twice as near to the truth as the normal density (squares of distances: four
    times), in one dimension and in three; narrow kernels, which win by chance, are not taken."""
    for d in (1, 3):
        x, fresh = two_modes(2000, d), two_modes(2000, d, seed=1)
        scale, truth = x.std(axis=0), true_score(fresh)
        model = ExponentialFamilyDensity(200).fit(x)
        base = (x.mean(axis=0) - fresh) @ np.linalg.inv(np.cov(x.T).reshape(d, d))
        gaps = [
            (((s - truth) * scale) ** 2).sum(axis=1).mean()
            for s in (model.log_density_gradient(fresh), base)
        ]
        assert gaps[0] < 0.25 * gaps[1]
        assert model.bandwidth_ > 0.5


def test_a_noisy_lead_of_a_narrow_kernel_is_chance():
    """Folds of normal points: the narrow width leads by .19, and its differences vary by more."""
    narrow, wide = [-0.51, -1.17, -0.51, -0.58, -0.68], [-0.49, -0.52, -0.53, -0.51, -0.46]
    sizes = np.full(5, 600.0)
    assert choose(np.array([[narrow], [wide]]), (1.0,), sizes) == (1, 0)
    steady = np.array(wide) - 0.19 + 0.01 * np.arange(5)
    assert choose(np.array([[steady], [wide]]), (1.0,), sizes) == (0, 0)
    assert choose(np.array([[wide, wide, steady]]), (0.1, 1.0, 0.01), sizes) == (0, 2)
    assert choose(np.array([[wide, wide, narrow]]), (0.1, 1.0, 0.01), sizes) == (0, 1)


@pytest.mark.long
@pytest.mark.parametrize("d", [1, 2])
def test_normal_points_keep_the_normal_distribution(d):
    """The base is the answer, and most samples add nothing to it that chance alone shows."""
    gaps = []
    for seed in range(5):
        x, fresh = np.random.default_rng(seed).normal(size=(2, 1000, d))
        slopes = ExponentialFamilyDensity(60).fit(x).log_density_gradient(fresh)
        gaps.append(((slopes + fresh) ** 2).sum(axis=1).mean())
    assert np.median(gaps) < 0.015


def test_same_from_arrays_bags_and_stores(tmp_path):
    """Points of bags together, in uneven chunks; sums do not depend on where the points lie."""
    x = two_modes(90, 2)
    parts = [x[:7], x[7:40], x[40:41], x[41:]]
    model = ExponentialFamilyDensity(10, alpha=0.1, n_folds=2)
    bags = Bags.from_list(parts)
    of_bags = model.fit(bags).coefficients_
    store = BagStore.create(tmp_path / "a.zarr", n_dims=2, box=bags_box(x), dtype="float64")
    store.append(bags)
    np.testing.assert_allclose(model.fit(store).coefficients_, of_bags, rtol=1e-9)
    chosen = ExponentialFamilyDensity(10, bandwidth=model.bandwidth_, alpha=0.1, n_folds=2)
    np.testing.assert_allclose(chosen.fit(x).coefficients_, of_bags, rtol=1e-9)


def bags_box(x):
    """A box around points."""
    return list(zip((x.min(axis=0) - 1).tolist(), (x.max(axis=0) + 1).tolist(), strict=True))


@pytest.mark.long
def test_samples_have_the_density():
    """In one dimension by the quantiles of quadrature; the same again by the seed."""
    model = ExponentialFamilyDensity(100).fit(two_modes(1000, 1))
    grid = np.linspace(-6, 12, 4001)
    p = np.exp(model.log_density(grid) - model.log_density(grid).max())
    below = np.cumsum(p) / p.sum()
    drawn = model.sample(2000, n_steps=50, seed=1)
    shares = np.interp(np.sort(drawn[:, 0]), grid, below)
    assert np.abs(shares - (np.arange(2000) + 0.5) / 2000).max() < 1.63 / 2000**0.5
    np.testing.assert_array_equal(drawn, model.sample(2000, n_steps=50, seed=1))


def test_in_tests_of_fit():
    """Its own samples pass, those of the normal distribution with the same moments do not."""
    x = two_modes(3000, 1)
    model = ExponentialFamilyDensity(100).fit(x)
    assert fit_test(model.sample(300, n_steps=100), model, seed=1).p_value > 0.02
    normal = x.mean() + x.std() * np.random.default_rng(0).standard_normal((600, 1))
    assert fit_test(normal, model).p_value < 0.01


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (np.ones((20, 1)), "coordinate 0 of the points is constant"),
        (np.outer(np.arange(20.0), [1, 2]), "determine each other"),
        (np.ones((3, 1)), "fewer than the 5 folds"),
        ([], "no bags"),
        (np.array([[np.nan], *[[i] for i in range(9)]]), "row 0"),
    ],
)
def test_what_has_no_density(x, message):
    """Each says what is wrong with the points."""
    with pytest.raises(BagbasisError, match=message):
        ExponentialFamilyDensity(4).fit(x)


def test_score_is_the_negative_loss_of_score_matching():
    """By differences of log p; scikit-learn's searches and pipelines compare with it."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((300, 2)) * [1.0, 5.0] + [0.0, 7.0]
    model = ExponentialFamilyDensity(40, bandwidth=1.0, alpha=0.1).fit(x, np.arange(300))
    fresh, scale = x[:50] + 0.1, x.std(axis=0)
    value = np.zeros(50)
    for j in range(2):
        step = 1e-3 * scale[j]
        shift = step * np.eye(2)[j]
        up, at, down = (model.log_density(fresh + k * shift) for k in (1, 0, -1))
        value -= ((up - down) / (2 * step)) ** 2 / 2 + (up - 2 * at + down) / step**2
    assert model.score(fresh) == pytest.approx(value.mean(), rel=1e-3)
    assert model.score(x) > ExponentialFamilyDensity(40, bandwidth=1.0, alpha=0.1).fit(3 * x).score(
        x
    )
    assert np.isfinite(
        cross_val_score(ExponentialFamilyDensity(20, bandwidth=1.0, alpha=0.1), x, cv=3)
    ).all()
    pipeline = make_pipeline(
        StandardScaler(), ExponentialFamilyDensity(20, bandwidth=1.0, alpha=0.1)
    )
    assert isinstance(pipeline.fit(x, np.arange(300)).score(x, np.arange(300)), float)
    search = GridSearchCV(ExponentialFamilyDensity(20, bandwidth=1.0), {"alpha": [0.01, 0.1]}).fit(
        x
    )
    assert search.best_params_["alpha"] in (0.01, 0.1)


def test_not_fitted():
    """Nothing is guessed."""
    for name in ("score", "log_density", "log_density_gradient"):
        with pytest.raises(NotFittedError, match="call fit first"):
            getattr(ExponentialFamilyDensity(), name)([[0.0]])
        with pytest.raises(BagbasisError, match="call fit first"):
            getattr(ExponentialFamilyDensity(), name)([[0.0]])


@pytest.mark.long
def test_few_points_of_two_modes_have_no_steep_tails():
    """On points that no fold has seen the divergence stays near that of a normal density, .25."""
    for seed in range(3):
        rng = np.random.default_rng([seed, 100, 1])
        x, fresh = (
            1.5 * rng.choice([-1.0, 1.0], n) + rng.standard_normal(n) for n in (100, 20_000)
        )
        model = ExponentialFamilyDensity(300).fit(x)
        truth = 1.5 * np.tanh(1.5 * fresh) - fresh
        assert ((model.log_density_gradient(fresh)[:, 0] - truth) ** 2).mean() < 5


def test_tables_are_points():
    """A table is points as its array is, whose columns may come in another order later."""
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 2)) * [1, 3], columns=["a", "b"])
    made = ExponentialFamilyDensity(10, bandwidth=1.0, alpha=0.1)
    expected = made.fit(frame.to_numpy()).log_density(frame.to_numpy())
    for table in (frame, frame.convert_dtypes(), pl.from_pandas(frame)):
        np.testing.assert_allclose(made.fit(table).log_density(frame[["b", "a"]]), expected)
    made.fit(frame["a"])
    np.testing.assert_array_equal(made.log_density(frame["a"]), made.log_density(frame[["a"]]))
    with pytest.raises(DataError, match="row 3: it holds NaN"):
        made.fit(np.where(np.arange(40)[:, None] == 3, np.nan, frame))
