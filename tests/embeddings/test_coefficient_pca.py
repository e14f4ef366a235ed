"""`CoefficientPCA` against a dense SVD of all coefficients."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from sklearn.decomposition import PCA

from bagbasis import (
    BagStore,
    CoefficientPCA,
    DoubleBasisRegressor,
    HDDEmbedding,
    ModelError,
    PointTransformer,
    ProjectionEmbedding,
    RandomFourierFeatures,
    load_model,
)
from bagbasis.embeddings.composed.row_moments import LANCZOS, RowMoments, principal_axes, signed
from tests.oracles.labelled import labelled_bags, stored
from tests.oracles.principal import components_by_svd
from tests.passes import pass_limits

BAGS, Y = labelled_bags(150)
S = 25  # coefficients of `inner`


def inner(**params):
    return ProjectionEmbedding(n_per_dim=5, dtype="float64", **params)


def expected(bags, n, whiten=False):
    rows = inner().fit_transform(bags)
    mean, axes = components_by_svd(rows, n, whiten)
    return (rows - mean) @ axes.T


@pytest.mark.parametrize("n_bags", [S - 5, pytest.param(150, marks=pytest.mark.long)])
@pytest.mark.parametrize("share", [0.5, 0.9, 0.999])
def test_a_share_of_the_variance(n_bags, share):
    """As many as scikit-learn keeps, with its signs."""
    rows = inner().fit_transform(BAGS[:n_bags])
    pca = CoefficientPCA(inner(), n_components=share, dtype="float64").fit(BAGS[:n_bags])
    peer = PCA(share).fit(rows)
    np.testing.assert_allclose(pca.spec_.axes, peer.components_, atol=1e-9)


def test_no_more_than_there_are():
    """Axes along which bags do not differ are none; bags that are all alike have one."""
    assert CoefficientPCA(inner(), n_components=20).fit(BAGS[:4]).spec_.n_features == 3
    alike = CoefficientPCA(inner(), whiten=True).fit_transform([BAGS[0]] * 40)
    assert alike.shape == (40, 1)
    np.testing.assert_allclose(alike, 0, atol=1e-6)


def test_few_axes_of_many():
    """Lanczos' are those of the dense solver; those of nothing are some axes."""
    rows = np.random.default_rng(0).standard_normal((40, LANCZOS)) * 0.9 ** np.arange(LANCZOS)
    values, axes = principal_axes(rows.T @ rows, 5)
    _, expected, rest = np.linalg.svd(rows, full_matrices=False)
    np.testing.assert_allclose(values, expected[:5] ** 2, rtol=1e-10)
    np.testing.assert_allclose(signed(axes), signed(rest[:5]), atol=1e-9)
    assert principal_axes(np.zeros((LANCZOS, LANCZOS)), 5)[0].tolist() == [0] * 5


@given(st.lists(st.integers(0, 7), min_size=1, max_size=6), st.integers(0, 2**32 - 1))
def test_moments_merge(sizes, seed):
    """However rows are cut, also into none, and far from 0."""
    rows = 1e6 + np.random.default_rng(seed).standard_normal((sum(sizes), 3))
    whole, merged = RowMoments.of(rows), RowMoments.of(rows[:0])
    for part in np.split(rows, np.cumsum(sizes)[:-1]):
        merged = merged + RowMoments.of(part)
    assert merged.n == whole.n
    np.testing.assert_allclose(merged.mean, whole.mean, rtol=1e-14)
    np.testing.assert_allclose(merged.scatter, whole.scatter, atol=1e-7)


@pytest.mark.parametrize(
    ("embedding", "n_passes"),
    [
        (inner(), 1),
        (CoefficientPCA(inner(), n_components=6), 2),
        (CoefficientPCA(ProjectionEmbedding(n_per_dim=15), n_components=6), 2),
        (PointTransformer(PCA(2), CoefficientPCA(inner(), n_components=6)), 3),
    ],
)
def test_progress_of_the_passes_that_decide(embedding, n_passes):
    """From rows and from sums they are counted as the fit is."""
    counts = []
    model = DoubleBasisRegressor(embedding, RandomFourierFeatures(n_features=32))
    model.fit(BAGS, Y, progress=lambda *count: counts.append(count))
    assert counts.count((150, 150)) == n_passes


def fitted_components(urls):
    model = DoubleBasisRegressor(
        CoefficientPCA(inner(), n_components=6),
        RandomFourierFeatures(n_features=32),
        alpha=1e-3,
        precision="float64",
    )
    with pass_limits(small_task_seconds=1e-9, rows_per_block=7):
        return [model.fit(BagStore.open(url)).features_.embedding for url in urls]


@pytest.mark.long
def test_many_tasks_give_the_components_of_all_rows(tmp_path):
    """From the rows of few bags, and from the sums of many."""
    sizes = S - 5, 150
    urls = [stored(tmp_path / f"{n}.zarr", BAGS[:n], Y[:n]).url for n in sizes]
    alone = fitted_components(urls)
    for n, components in zip(sizes, alone, strict=True):
        axes = components_by_svd(inner().fit_transform(BAGS[:n]), 6)[1]
        np.testing.assert_allclose(components.axes, axes, atol=1e-8)


def test_components_of_a_sample():
    """max_bags takes evenly spread runs, and all bags where these are no more."""
    few = CoefficientPCA(inner(), n_components=3, max_bags=30).fit(BAGS).spec_
    rows = inner().fit_transform(BAGS)
    runs = [slice(a, a + 10) for a in (0, 70, 140)]
    chosen = np.concatenate([rows[run] for run in runs])
    np.testing.assert_allclose(few.mean, chosen.mean(axis=0), atol=1e-12)
    whole = CoefficientPCA(inner(), n_components=3).fit(BAGS).spec_
    assert CoefficientPCA(inner(), n_components=3, max_bags=150).fit(BAGS).spec_ == whole != few


def test_bags_that_drop_left_no_point(tmp_path):
    """They have no coefficients, and no part in the components."""
    outside = [*BAGS, np.full((3, 2), 5.0)]
    box = [(0.0, 1.0)] * 2
    pca = CoefficientPCA(inner(), n_components=4, out_of_box="drop", box=box)
    assert (
        pca.fit(outside).spec_
        == CoefficientPCA(inner(), n_components=4, out_of_box="drop", box=box).fit(BAGS).spec_
    )


def test_a_saved_model_keeps_its_components(tmp_path):
    """As arrays with checksums; one that is another model's is damage."""
    model = DoubleBasisRegressor(
        CoefficientPCA(HDDEmbedding("tv"), n_components=8), RandomFourierFeatures(n_features=16)
    )
    model.fit(BAGS, Y).save(tmp_path / "m.zarr")
    again = load_model(tmp_path / "m.zarr")
    assert again.features_ == model.features_
    assert "principal" not in str(again.features_.to_dict())
    other = model.fit(BAGS[::-1], Y)
    other.save(tmp_path / "other.zarr")
    axes = tmp_path / "m.zarr" / "principal_axes"
    axes.rename(tmp_path / "gone")
    (tmp_path / "other.zarr" / "principal_axes").rename(axes)
    with pytest.raises(ModelError, match=r"damaged model .*components are not those"):
        load_model(tmp_path / "m.zarr")
