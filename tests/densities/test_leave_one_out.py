"""Leave-one-out scores: equal to the naive loop over left-out points, in any partition."""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis import BagError, Bags, BagStore, Box, DataError, ParameterError, ProjectionEmbedding
from bagbasis.densities import Densities, Smoothness, choose_smoothness, estimate_densities
from bagbasis.embeddings import BASES, index_set
from bagbasis.embeddings.bases.smoothness import choose_bandwidth
from tests.oracles.densities import kernel_score_by_loop
from tests.oracles.series import index_set_by_loop, leave_one_out_score
from tests.passes import pass_limits
from tests.workers import two_workers


def bumps(n_dims, width, sizes=(12, 9, 2), seed=0):
    """Bags of points around a centre of their own, some on the edges."""
    rng = np.random.default_rng(seed)
    centres = rng.uniform(0.1, 0.9, (len(sizes), n_dims))
    return [
        np.clip(centre + width * rng.standard_normal((size, n_dims)), 0, 1)
        for centre, size in zip(centres, sizes, strict=True)
    ]


@pytest.mark.parametrize("n_dims", [1, 2, 3])
def test_kernel_scores_against_the_loop(n_dims):
    """Inner products of all pairs over n², and the density without each point at it."""
    bags = bumps(n_dims, 0.15)
    least = {1: 0.01, 2: 0.03, 3: 0.07}[n_dims]  # only so that the others are resolved fully
    chosen = choose_smoothness(bags, "kde", candidates=[0.3, least, 0.1])
    assert chosen.candidates.tolist() == [least, 0.1, 0.3]
    naive = [np.mean([kernel_score_by_loop(bag, h) for bag in bags]) for h in (least, 0.1, 0.3)]
    np.testing.assert_allclose(chosen.scores[1:], naive[1:], rtol=1e-8, atol=1e-9)
    assert chosen.scores[0] == pytest.approx(naive[0], rel=1e-5)


@pytest.mark.parametrize("basis", BASES)
@pytest.mark.parametrize("n_dims", [1, 2, 3])
@pytest.mark.parametrize("shape", ["ball", "tensor"])
def test_series_scores_against_the_loop(basis, n_dims, shape):
    """Densities without each point in turn, at that point (004, eq. 2.17 and 2.20)."""
    bags = bumps(n_dims, 0.2)
    candidates = [0.0, 1.0, 2.3, 3.0] if shape == "ball" else [1, 2, 4]
    chosen = choose_smoothness(bags, "series", candidates=candidates, shape=shape, basis=basis)
    for value, score in zip(candidates, chosen.scores, strict=True):
        limits = (None, value) if shape == "ball" else (value, None)
        indices = index_set_by_loop(n_dims, *limits, basis)
        naive = np.mean([leave_one_out_score(bag, indices, basis).sum() for bag in bags])
        assert score == pytest.approx(naive, rel=1e-10, abs=1e-11)


def test_the_scores_that_embeddings_use():
    """Basis sizes and bandwidths chosen for embeddings come from the same scores."""
    bags = Bags.from_list(bumps(2, 0.1, (40, 25, 1, 60)))
    spec = ProjectionEmbedding(n_per_dim="auto").fit(bags).spec_
    assert choose_smoothness(bags, shape="tensor").best == spec.n_per_dim
    spec = ProjectionEmbedding(max_norm="auto").fit(bags).spec_
    assert choose_smoothness(bags).best == pytest.approx(spec.max_norm)
    bandwidth = choose_bandwidth([bags], np.array([[0, 1]]), Box.unit(2), 64)
    near = bandwidth * np.array([0.5, 0.8, 1.0, 1.25, 2.0])
    assert choose_smoothness(bags, "kde", candidates=near).best == bandwidth


def test_default_candidates():
    """By default all sets of at most 1,024 functions, and the bandwidths that can be resolved."""
    rng = np.random.default_rng(4)
    narrowest = []
    for n_dims in (1, 2, 3, 6):
        bags = [rng.random((5, n_dims))]
        balls, boxes = (choose_smoothness(bags, shape=shape) for shape in ("ball", "tensor"))
        assert len(index_set(n_dims, None, max_norm=balls.candidates[-1])) <= 1024
        assert boxes.candidates.tolist() == list(range(1, len(boxes.candidates) + 1))
        assert boxes.candidates[-1] ** n_dims <= 1024
        kernels = choose_smoothness(bags, "kde")
        assert len(kernels.candidates) > 8
        assert kernels.candidates[-1] == 0.5
        narrowest.append(kernels.candidates[0])
        assert (np.diff(kernels.candidates) > 0).all()
        assert len(kernels.candidates) == len(kernels.scores)
        assert np.isfinite(kernels.scores).all()
    assert (np.diff(narrowest) > 0).all()  # fewer frequencies a dimension resolve less


@pytest.mark.parametrize("shape", ["ball", "tensor"])
def test_scores_do_not_depend_on_the_tasks(shape):
    """One task, and a task per few bags, give the same scores."""
    bags = Bags.from_list(bumps(2, 0.2, [3, 17, 2, 30, 1] * 20))
    whole = choose_smoothness(bags, shape=shape)
    with pass_limits(task_seconds=1e-4):
        split = choose_smoothness(bags, shape=shape)
    np.testing.assert_allclose(split.scores, whole.scores, rtol=1e-11, atol=1e-11)
    assert (split.n_bags, split.n_alone) == (whole.n_bags, whole.n_alone) == (80, 20)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["series", "kde"])
def test_store_and_memory(kind, tmp_path):
    """A store in many tasks gives the scores of the bags in memory, with progress by bags."""
    bags = bumps(2, 0.1, [20, 3, 1] * 40)
    box = [(-1, 3), (0, 2)]
    store = BagStore.create(tmp_path / "s.zarr", 2, box=box, chunk_points=50, dtype="float64")
    store = store.append(bags)
    candidates = [0.05, 0.1, 0.2] if kind == "kde" else [1.0, 5.0, 9.0]
    seen = []
    with pass_limits(task_seconds=1e-7):
        of_store = choose_smoothness(
            store,
            kind,
            candidates=candidates,
            progress=lambda done, total: seen.append((done, total)),
        )
    of_bags = choose_smoothness(bags, kind, candidates=candidates, box=box)
    np.testing.assert_allclose(of_store.scores, of_bags.scores, rtol=1e-12)
    assert of_store.n_bags == of_bags.n_bags == 80
    assert of_store.n_alone == of_bags.n_alone == 40
    assert of_store.box == of_bags.box == Box.of(box, 2)
    assert seen[0] == (0, 120)
    assert seen[-1] == (120, 120)
    assert len(seen) > 4


@pytest.mark.long
def test_on_a_cluster(tmp_path):
    """A worker process gives the scores that this process gives."""
    store = BagStore.create(tmp_path / "s.zarr", 2, dtype="float64")
    store = store.append(bumps(2, 0.1, [20, 3, 1] * 40))
    here = choose_smoothness(store, "kde", candidates=[0.05, 0.2])
    with pass_limits(task_seconds=1e-4), two_workers():
        there = choose_smoothness(store, "kde", candidates=[0.05, 0.2])
    np.testing.assert_allclose(there.scores, here.scores, rtol=1e-12)


def test_points_outside():
    """Dropped points have no say, clipped ones are on the edge, and they are counted."""
    clean = bumps(1, 0.1, (20, 15))
    beyond = [np.concatenate([bag, np.full((3, 1), 1.5)]) for bag in clean]
    edges = [np.concatenate([bag, np.full((3, 1), 1.0)]) for bag in clean]
    lost = [np.array([[0.5], [2.0]]), np.array([[2.0], [3.0]])]
    box = [(0, 1)]
    for kind in ("series", "kde"):
        of_clean = choose_smoothness(clean, kind)
        dropped = choose_smoothness(beyond + lost, kind, box=box, out_of_box="drop")
        np.testing.assert_allclose(dropped.scores, of_clean.scores, rtol=1e-12)
        assert (dropped.n_outside, dropped.n_alone) == (9, 2)
        clipped = choose_smoothness(beyond, kind, box=box)
        np.testing.assert_allclose(clipped.scores, choose_smoothness(edges, kind).scores)
        assert clipped.n_outside == 6
        with pytest.raises(BagError, match="bag 1: 3 points lie outside"):
            choose_smoothness([clean[0], beyond[1]], kind, box=box, out_of_box="error")


def test_the_choice_comes_near_the_truth():
    """The candidate of least score is near that of least true error, for both kinds."""
    rng = np.random.default_rng(5)
    truth = estimate_densities([rng.beta(2, 5, (200_000, 1))], smoothness=30.0)
    bags = [rng.beta(2, 5, (300, 1)) for _ in range(40)]
    for kind in ("series", "kde"):
        chosen = choose_smoothness(bags, kind)
        errors = []
        for value in chosen.candidates:
            gap = estimate_densities(bags, kind, smoothness=float(value), box=[(0, 1)])
            repeated = np.repeat(truth.coefficients, 40, axis=0)
            same = Densities(repeated, truth.indices, basis="cosine", box=None)
            errors.append((gap.l2_distance(same) ** 2).mean())
        at_best = errors[chosen.candidates.tolist().index(chosen.best)]
        assert at_best < 1.1 * min(errors) < 0.5 * errors[-1]


def test_best_of_equal_scores_is_the_smoother():
    """Between candidates that score alike the smoother estimate is taken."""
    bags = [[[0.5]] * 4]
    chosen = choose_smoothness(bags, "series", candidates=[1.0, 1.5])
    assert chosen.scores[0] == chosen.scores[1]
    assert chosen.best == 1.0
    bandwidths, scores = np.array([0.1, 0.2, 0.3]), np.array([1.0, -1.0, -1.0])
    assert (
        Smoothness(
            kind="kde",
            candidates=bandwidths,
            scores=scores,
            n_bags=1,
            n_alone=0,
            n_outside=0,
            box=Box.unit(1),
        ).best
        == 0.3
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kind": "kde", "basis": "legendre"}, "do not fit 'kde'"),
        ({"kind": "kde", "shape": "tensor"}, "do not fit 'kde'"),
        ({"candidates": [1.0, np.nan]}, "candidates are"),
        ({"candidates": [1.5], "shape": "tensor"}, r"n_per_dim is 1\.5"),
        ({"candidates": [1e-3], "kind": "kde"}, r"bandwidth 0\.001 in 2 dimensions needs"),
        ({"candidates": [1e4]}, "more than 200000 functions"),
    ],
)
def test_refused(arguments, message):
    """Values that are not there, and sets that are too large, before any pass."""
    with pytest.raises(ParameterError, match=message):
        choose_smoothness([[[0.5, 0.5], [0.1, 0.2]]], **arguments)


def test_no_bags_of_two_points(tmp_path):
    """Bags of one point alone, and no bags at all, are refused."""
    with pytest.raises(DataError, match="two points"):
        choose_smoothness([[[0.5]], [[0.1]]])
    empty = BagStore.create(tmp_path / "empty.zarr", 1)
    with pytest.raises(DataError, match=r"empty\.zarr: no bags"):
        choose_smoothness(empty)
