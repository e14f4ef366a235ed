"""Kernels of divergences, in scikit-learn's precomputed-kernel estimators."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from bagbasis import Bags, DataError, ParameterError
from bagbasis.densities import (
    DivergenceKernel,
    PSDRepair,
    divergence_matrix,
    kernel_matrix,
    median_bandwidth,
    median_scale,
)
from bagbasis.densities.divergences.neighbour_estimates import BY_KERNEL, BY_NEIGHBOURS

NAMES = BY_NEIGHBOURS + BY_KERNEL
RNG = np.random.default_rng(0)
LABELS = np.arange(60) % 2
BAGS = [RNG.normal(scale=1 + label, size=(RNG.integers(30, 60), 2)) for label in LABELS]
TRAIN, TEST = slice(0, 40), slice(40, 60)


class TestKernelMatrix:
    def test_formula(self):
        """exp(−D / 2σ²); estimates below zero count as zero."""
        D = np.array([[0.0, 2.0, -0.5], [8.0, 0.0, 1.0]])
        truth = np.exp(-np.array([[0, 2, 0], [8, 0, 1]]) / (2 * 1.5**2))
        np.testing.assert_allclose(kernel_matrix(D, 1.5), truth)
        assert D[0, 2] == -0.5

    def test_median(self):
        """σ² is the median divergence of different bags; 1 when that is not positive."""
        D = np.array([[0, 1, 4], [1, 0, 9], [4, 9, 0]])
        assert median_scale(D) == 2
        np.testing.assert_allclose(kernel_matrix(D), np.exp(-D / 8))
        assert median_scale(-D) == median_scale(np.zeros((3, 3))) == median_scale([[0]]) == 1

    def test_refused(self):
        """A median of a rectangle, scales and divergences that are none."""
        with pytest.raises(DataError, match=r"shape \(2, 3\)"):
            kernel_matrix(np.ones((2, 3)))
        for scale in (0, -1.0, "mean", None, np.inf):
            with pytest.raises(ParameterError, match="scale is"):
                kernel_matrix(np.ones((2, 2)), scale)
        with pytest.raises(DataError, match="bag 1 from bag 0 is nan"):
            kernel_matrix([[0, 1], [np.nan, 0]])
        with pytest.raises(DataError, match=r"shape \(3,\)"):
            kernel_matrix([1, 2, 3])


@pytest.mark.parametrize("name", NAMES)
class TestDivergenceKernel:
    @pytest.mark.long
    def test_matrices(self, name):
        """Training and test kernels come from the divergences and the training bags' σ; directed
        divergences are averaged over both directions."""
        transformer = DivergenceKernel(name)
        K_train = transformer.fit_transform(BAGS[TRAIN])
        K_test = transformer.transform(BAGS[TEST])
        params = {"bandwidth": median_bandwidth(BAGS[TRAIN])} if name in BY_KERNEL else {}
        D = divergence_matrix(BAGS[TRAIN], None, divergence=name, **params)
        E = divergence_matrix(BAGS[TEST], BAGS[TRAIN], divergence=name, **params)
        if name in ("kl", "renyi"):
            D = (D + D.T) / 2
            E = (E + divergence_matrix(BAGS[TRAIN], BAGS[TEST], divergence=name).T) / 2
        sigma = median_scale(D)
        assert transformer.scale_ == pytest.approx(sigma)
        np.testing.assert_allclose(K_train, np.exp(-np.maximum(D, 0) / (2 * sigma**2)), atol=1e-12)
        np.testing.assert_allclose(K_test, np.exp(-np.maximum(E, 0) / (2 * sigma**2)), atol=1e-12)
        assert (K_train == K_train.T).all()
        np.testing.assert_allclose(transformer.fit(BAGS[TRAIN]).transform(BAGS[TEST]), K_test)

    def test_a_training_bag_again(self, name):
        """New bags that are training bags get their rows of the training kernel."""
        transformer = DivergenceKernel(name)
        K_train = transformer.fit_transform(BAGS[TRAIN])
        again = transformer.transform([BAGS[7], BAGS[3].copy()])
        np.testing.assert_allclose(again, K_train[[7, 3]], rtol=0, atol=1e-12)

    def test_classification(self, name):
        """Two groups of bags of different spread are told apart by an SVM on the repaired
        kernel."""
        model = make_pipeline(DivergenceKernel(name), PSDRepair("clip"), SVC(kernel="precomputed"))
        model.fit(BAGS[TRAIN], LABELS[TRAIN])
        assert model.score(BAGS[TEST], LABELS[TEST]) >= 0.95


def test_regression():
    """Kernel ridge regression of the scale of a bag's points on the test block."""
    rng = np.random.default_rng(1)
    y = rng.uniform(0.5, 2, 80)
    bags = [rng.normal(scale=s, size=(100, 1)) for s in y]
    transformer, repair = DivergenceKernel("js"), PSDRepair("clip")
    K = repair.fit_transform(transformer.fit_transform(bags[:60]))
    model = KernelRidge(alpha=1.0, kernel="precomputed").fit(K, y[:60])
    assert model.score(repair.transform(transformer.transform(bags[60:])), y[60:]) > 0.75


@pytest.mark.long
@pytest.mark.parametrize("container", [list, Bags.from_list])
def test_grid_search(container):
    """Divergence, scale and repair are parameters of a pipeline over bags."""
    model = make_pipeline(DivergenceKernel(), PSDRepair(), SVC(kernel="precomputed"))
    grid = {"divergencekernel__scale": [1e-3, "median"], "psdrepair__method": ["flip"]}
    search = GridSearchCV(model, grid, cv=3).fit(container(BAGS[TRAIN]), LABELS[TRAIN])
    assert search.best_params_["divergencekernel__scale"] == "median"
    assert search.score(container(BAGS[TEST]), LABELS[TEST]) > 0.9


class TestConventions:
    def test_clone_and_pickle(self):
        """Parameters are stored, cloned without the fit, and pickled with it."""
        model = DivergenceKernel("renyi", scale=2.0, k=4, alpha=0.5)
        assert clone(model).get_params() == model.get_params()
        assert model.get_params()["bandwidth"] is None
        model.fit(BAGS[TRAIN])
        assert model.scale_ == 2.0
        copy = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(copy.transform(BAGS[TEST]), model.transform(BAGS[TEST]))

    def test_not_fitted(self):
        """Transforming before fit is scikit-learn's NotFittedError."""
        with pytest.raises(NotFittedError):
            DivergenceKernel().transform(BAGS)

    def test_progress(self):
        """Progress is passed on, for fit and for transform."""
        calls = []
        model = DivergenceKernel("kl").fit(BAGS[:5], progress=lambda *call: calls.append(call))
        assert calls[-1] == (25, 25)
        model.transform(BAGS[:3], progress=lambda *call: calls.append(call))
        assert calls[-1] == (15, 15)
