"""Embeddings without edges take points outside a measured box as they are."""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis import (
    Bags,
    DoubleBasisRegressor,
    EmbeddingUnion,
    ExtremesEmbedding,
    MeanMapEmbedding,
    MomentsEmbedding,
    PointTransformer,
    ProjectionEmbedding,
    ShrunkEmbedding,
    SlicedWassersteinEmbedding,
)
from bagbasis.embeddings.base import MARGIN
from bagbasis.embeddings.kernels.by_arrays import by_arrays
from bagbasis.embeddings.kinds import from_name, with_name

RNG = np.random.default_rng(3)
BAGS = [RNG.normal(0, s, (30, 2)) for s in (0.5, 1.0, 2.0, 3.0)]
UNWALLED = {
    "moments": MomentsEmbedding(),
    "extremes": ExtremesEmbedding(n_directions=5),
    "sliced": SlicedWassersteinEmbedding(n_directions=5, n_quantiles=4),
    "mean_map": MeanMapEmbedding(n_features=16),
}
COMPOSED = {
    **UNWALLED,
    "union": EmbeddingUnion([MomentsEmbedding(), ExtremesEmbedding(n_directions=4)]),
    "shrunk": ShrunkEmbedding(MomentsEmbedding()),
    "transformed": PointTransformer(embedding=MomentsEmbedding()),
}


def outside_of(spec, shares):
    """One bag whose points lie ``shares`` of a side beyond the upper corner."""
    unit = 1 + np.asarray(shares)[:, None] * np.ones(2)
    return [spec.box.from_unit(unit)]


def rows_of(spec, bags):
    rows, outside = np.empty((len(bags), spec.n_features)), np.zeros(len(bags), np.int64)
    spec.embed(Bags.from_list(bags), rows, outside)
    return rows, outside


@pytest.mark.parametrize("small", [False, True])
@pytest.mark.parametrize("name", UNWALLED)
def test_points_outside_are_embedded_where_they_are(name, small):
    """As if the box were the unit cube of points that are scaled by hand; all are counted."""
    spec = UNWALLED[name].fit(BAGS).spec_
    shares = [0.2, 0.6, 3 * MARGIN]
    by_hand = 1 + np.minimum(shares, MARGIN)[:, None] * np.ones(2)
    unit = type(spec).from_dict({**spec.to_dict(), "box": [[0, 1]] * 2, "margin": 100.0})
    with by_arrays(small):
        result, outside = rows_of(spec, outside_of(spec, shares))
        expected, _ = rows_of(unit, [by_hand])
    np.testing.assert_allclose(result, expected, rtol=1e-9, atol=1e-12)
    assert outside.tolist() == [3]


def test_the_largest_point_is_the_largest():
    """Extremes along one direction are the points themselves, on the scale of the box."""
    bags = [bag[:, :1] for bag in BAGS]
    spec = ExtremesEmbedding(tail=0.3).fit(bags).spec_
    unit = np.array([-0.7, 0.1, 0.5, 1.6])
    rows, _ = rows_of(spec, [spec.box.from_unit(unit[:, None])])
    np.testing.assert_allclose(rows[0] * 2, [-0.7, 0.1, 0.5, 1.6], rtol=1e-12)


@pytest.mark.parametrize("name", COMPOSED)
def test_a_given_box_has_walls(name):
    """Points beyond a box that is given count as at its edge; beyond a measured one they differ."""
    embedding = COMPOSED[name]
    measured = embedding.fit(BAGS).spec_
    inner = measured.embedding if name == "transformed" else measured
    value = type(embedding)(**{**embedding.get_params(deep=False), "box": inner.box.bounds})
    walled = value.fit(BAGS).spec_
    edge, far = [[0.0], [0.4]] if name != "transformed" else [[0.0], [0.5]]
    bags = [outside_of(inner, share)[0] for share in (edge, far)]
    if name == "transformed":
        step = measured.steps[0]
        bags = [bag * np.array(step.scale) + np.array(step.center) for bag in bags]
    rows, _ = rows_of(walled, bags)
    np.testing.assert_allclose(rows[0], rows[1], rtol=1e-6, atol=1e-7)
    rows, _ = rows_of(measured, bags)
    assert np.abs(rows[0] - rows[1]).max() > 1e-2


@pytest.mark.parametrize("how", ["drop", "error"])
def test_other_treatments_have_no_margin(how):
    """What is dropped or refused is not kept."""
    assert MomentsEmbedding(out_of_box=how).fit(BAGS).spec_.margin == 0


def test_saved_embeddings_of_before_have_walls():
    """What has no margin was written before; what has one keeps it; it is a number ≥ 0."""
    for embedding in UNWALLED.values():
        spec = embedding.fit(BAGS).spec_
        values = with_name(spec)
        assert values.pop("margin") == MARGIN
        before = from_name(values)
        assert before.margin == 0
        assert "margin" not in with_name(before)
        assert from_name(with_name(spec)) == spec
        assert before.with_margin() == spec
    assert not hasattr(ProjectionEmbedding().fit(BAGS).spec_, "margin")


def test_ranges_beyond_the_training_bags():
    """A label that is linear in the extremes is so for new bags beyond all training bags."""
    rng = np.random.default_rng(11)
    bags = [rng.gamma(2, 1, (60, 1)) for _ in range(160)]
    y = np.array([np.ptp(bag) for bag in bags])
    order = np.argsort([bag.max() for bag in bags])
    train, test = order[:140], order[140:]
    model = DoubleBasisRegressor().fit([bags[i] for i in train], y[train])
    errors = model.predict([bags[i] for i in test]) - y[test]
    assert np.sqrt(np.mean(errors**2)) < 0.1 * y.std()
