"""What every registered embedding holds to, whatever it computes."""

from __future__ import annotations

import inspect
import json
import pickle
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from bagbasis import (
    BagOfWordsEmbedding,
    Bags,
    BagStore,
    Box,
    CoefficientPCA,
    DataError,
    DoubleBasisRegressor,
    EmbeddingUnion,
    ExtremesEmbedding,
    HDDEmbedding,
    HistogramEmbedding,
    MeanMapEmbedding,
    MomentsEmbedding,
    ParameterError,
    PointTransformer,
    ProjectionEmbedding,
    RandomFourierFeatures,
    ShrunkEmbedding,
    SizeEmbedding,
    SlicedWassersteinEmbedding,
    features,
    load_model,
)
from bagbasis.embeddings import (
    EMBEDDINGS,
    EmbeddingSpec,
    SizeSpec,
    launching,
    spec_from_dict,
    spec_to_dict,
)
from bagbasis.embeddings.hdd_measures import DISTANCES
from bagbasis.embeddings.kinds import names_of_arrays
from tests.oracles.labelled import labelled_bags, stored
from tests.oracles.ragged import bags_at_the_edge
from tests.passes import pass_limits

RNG = np.random.default_rng(0)
UNIT = [RNG.random((size, 2)) for size in (1, 30, 257)]
BOX = [(0.0, 1.0), (0.0, 1.0)]


VARIANTS = {  # of the registered ones, besides their defaults
    "projection": (
        {"basis": "legendre", "max_norm": 3.5},
        {"marginals": 1},
        {"bandwidth": 0.05, "basis": "trigonometric"},
    ),
    "hdd": (*({"distance": d} for d in DISTANCES if d != "js"), {"max_norm": 3.0, "marginals": 1}),
    "histogram": ({"marginals": 1},),
    "moments": ({"standardize": False},),
    "coefficient_pca": (
        {"embedding": HDDEmbedding("js", n_per_dim=3), "n_components": 0.9, "whiten": True},
    ),
    "shrunk": ({"embedding": CoefficientPCA(MomentsEmbedding(), n_components=2)},),
    "point_transformer": (
        {"embedding": CoefficientPCA(MomentsEmbedding(), n_components=2)},
        {"embedding": ShrunkEmbedding()},
    ),
    "union": (
        {"join": "sum", "weights": [1, 2]},
        {
            "parts": [
                ("a", ProjectionEmbedding(n_per_dim=3)),
                ("mean", MomentsEmbedding(covariance=False)),
            ]
        },
    ),
}
ADDED = {  # fields that specs of before do not have
    "projection": {"bandwidth"},
    **{kind: {"margin"} for kind in ("moments", "extremes", "sliced_wasserstein", "mean_map")},
}
# A transformer that leaves points where they are: the contract is about boxes of these.
# Squares of random points have about their extremes, but not other quantiles.
BASES = {
    "point_transformer": {"transformer": FunctionTransformer()},
    "extremes": {"tail": 0.2},
}
KINDS = [
    pytest.param(
        partial(EMBEDDINGS[name], **{**BASES.get(name, {}), **variant}), id=f"{name} {variant}"
    )
    for name in sorted(EMBEDDINGS)
    for variant in ({}, *VARIANTS.get(name, ()))
]


@pytest.fixture(params=KINDS)
def kind(request):
    """A registered embedding's class, or one of its variants."""
    return request.param


@pytest.fixture(autouse=True)
def _warnings_are_errors():
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        yield


def embedded(spec, bags, dtype=np.float64):
    out = np.empty((len(bags), spec.n_features), dtype)
    return out, spec.embed(Bags.from_list(bags), out)


def test_registry(kind):
    """Every registered embedding makes its registered spec."""
    made = kind()
    spec = type(made).spec_kind
    assert isinstance(made.fit(UNIT).spec_, spec)


def test_constructor_only_stores(kind):
    """Every argument is a parameter kept as it is; clone and set_params work."""
    marks = {name: object() for name in inspect.signature(kind.func).parameters}
    assert vars(kind(**marks)) == marks == kind(**marks).get_params()
    embedding = kind(box=BOX)
    params = embedding.get_params()
    assert embedding.fit(UNIT) is embedding
    assert embedding.get_params() == params
    assert not hasattr(clone(embedding), "spec_")
    assert clone(embedding).set_params(out_of_box="drop").out_of_box == "drop"


def test_spec_is_small_and_travels(kind):
    """Through JSON and through pickle it stays the same and embeds the same."""
    spec = kind(box=[(-1, 2), (0, 1.5)]).fit(UNIT).spec_
    assert isinstance(spec, EmbeddingSpec)
    assert len(pickle.dumps(spec)) < 4000
    copies = [
        spec_from_dict(json.loads(json.dumps(spec_to_dict(spec))), spec.arrays()),
        pickle.loads(pickle.dumps(spec)),
    ]
    expected, _ = embedded(spec, UNIT)
    for copy in copies:
        assert copy == spec
        assert hash(copy) == hash(spec)
        np.testing.assert_array_equal(embedded(copy, UNIT)[0], expected)
    assert spec.cost.seconds_per_point > 0
    assert spec.n_dims == 2


def test_costs_grow_with_the_dimension(kind):
    """A plan takes more time for bags of more coordinates, and more memory for more features."""
    rng, width = np.random.default_rng(0), {"bandwidth": 0.1} if kind.func is HDDEmbedding else {}
    bags = rng.random((9, 30, 3))
    few, more = (kind(**width).fit(list(bags[:, :, :d])).spec_ for d in (2, 3))
    assert 0 < few.cost.seconds(100, 3000) < more.cost.seconds(100, 3000)
    least, most = few.cost.bytes_per_bag, more.cost.bytes_per_bag
    assert 8 * few.n_features <= least <= most
    assert least < most or few.n_features == more.n_features


def test_foreign_fields_are_refused(kind):
    """A description with a field too few, too many or of a wrong value is not read."""
    spec = kind().fit(UNIT).spec_
    values, arrays = spec_to_dict(spec), spec.arrays()
    assert spec_from_dict(values, arrays)
    assert set(names_of_arrays(values)) == set(arrays)
    for missing in sorted(set(values) - {"name"} - ADDED.get(values["name"], set())):
        with pytest.raises(ParameterError, match="not those of a"):
            spec_from_dict({k: v for k, v in values.items() if k != missing}, arrays)
        if values[missing] is not None:
            with pytest.raises((ParameterError, DataError, TypeError)):
                spec_from_dict({**values, missing: object()}, arrays)
    with pytest.raises(ParameterError, match="not those of a"):
        spec_from_dict({**values, "colour": 1}, arrays)
    for name in arrays:
        with pytest.raises(ParameterError, match=name):
            spec_from_dict(values, {**arrays, name: None})
        with pytest.raises(ParameterError, match="not those that the description is of"):
            spec_from_dict(values, {**arrays, name: arrays[name] + 1})


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_bags_at_the_edge(kind, dtype):
    """Points on edges and in corners, lone points, constant bags: finite, and no warning."""
    bags = bags_at_the_edge()
    for case in (bags, bags[3:4]):
        out = kind(dtype=dtype).fit_transform(case)
        assert out.dtype == dtype
        assert np.isfinite(out).all()


def test_walls_are_inside(kind):
    """No edge is outside, of a box whose bounds the points' precision does not hold either."""
    box = [(0.1, 0.7), (-1.3, 1e3)]
    edges = np.array([[0.1, -1.3], [0.7, 1e3], [0.7, -1.3]])
    spec = kind(box=box, out_of_box="error").fit([edges.astype(np.float32)]).spec_
    for dtype in (np.float32, np.float64):
        for out in (np.float32, np.float64):
            assert embedded(spec, [edges.astype(dtype)], out)[1] == 0


def test_box_is_scaled_to_the_unit_cube(kind):
    """Bags moved and stretched with their box embed as before."""
    moved = [bag * [20, 4] + [-10, 0] for bag in UNIT]
    a, _ = embedded(kind(box=BOX).fit(UNIT).spec_, UNIT)
    b, _ = embedded(kind(box=[(-10, 10), (0, 4)]).fit(moved).spec_, moved)
    np.testing.assert_allclose(a, b, atol=1e-9)


def test_out_of_box(kind):
    """clip moves points to the edge, drop leaves them out, error names the bag; all count."""
    outside = np.concatenate([UNIT[1], [[1.5, 1.5], [-1.0, -0.5]]])
    edges = np.concatenate([UNIT[1], [[1.0, 1.0], [0.0, 0.0]]])
    specs = {how: kind(out_of_box=how, box=BOX).fit(UNIT).spec_ for how in ("clip", "drop")}
    bags = [UNIT[1], outside, UNIT[2]]
    for how, twin in (("clip", edges), ("drop", UNIT[1])):
        out, n_outside = embedded(specs[how], bags)
        assert n_outside == 2
        np.testing.assert_allclose(out[1], embedded(specs[how], [twin])[0][0], atol=1e-12)
    error = kind(out_of_box="error", box=BOX).fit(UNIT)
    with pytest.raises(DataError, match="bag 1: 2 points lie outside the box"):
        error.transform(bags)
    with pytest.raises(DataError, match="bag 2: no point lies inside the box"):
        embedded(specs["drop"], [*bags[:2], [[3.0, 3.0], [0.5, -1.0]]])


def test_repeated_points_are_the_same_bag(kind):
    """A bag and its repetition have one embedding, in any order of the points; others have not.

    Where bags are shrunk by size, or where their size is the embedding, the repetition counts for
    more points.
    """
    spec = kind().fit(UNIT).spec_
    bags = [UNIT[1], UNIT[1][::-1], np.repeat(UNIT[1], 3, axis=0), UNIT[1][1:] ** 2]
    out, _ = embedded(spec, bags)
    by_size = spec.is_uncertain or isinstance(spec, SizeSpec)
    np.testing.assert_allclose(out[1], out[0], atol=1e-12)
    assert np.allclose(out[2], out[0], atol=1e-12) is not by_size
    assert ((out[0] - out[3]) ** 2).sum() > 1e-3


def test_rows_do_not_depend_on_neighbours(kind):
    """A bag embeds the same alone and among others."""
    spec = kind().fit(UNIT).spec_
    together, _ = embedded(spec, [*UNIT, *UNIT[::-1]] * 5)
    alone = np.concatenate([embedded(spec, [bag])[0] for bag in UNIT])
    np.testing.assert_allclose(together, alone[[0, 1, 2, 2, 1, 0] * 5], atol=1e-12)


def test_bags_of_another_dimension_and_none(kind):
    """A fitted embedding refuses another dimension; no bags have no rows."""
    embedding = kind().fit(UNIT)
    with pytest.raises(DataError, match="bags have dimension 3, the embedding was made for 2"):
        embedding.transform([RNG.random((2, 3))])
    none = Bags.from_list(UNIT)[:0]
    assert embedding.transform(none).shape == (0, embedding.spec_.n_features)
    with pytest.raises(DataError, match="no bags to fit"):
        embedding.fit(none)


def test_boxes(kind):
    """Data in the unit cube keep it, others are measured with 1 % on each side, anew at each fit;
    a box of another dimension, without volume, or that is none, is refused."""
    embedding = kind().fit([[[0.0, -5.0], [3.0, 1.0]], [[10.0, 5.0]]])
    assert embedding.spec_.box == Box((-0.1, -5.1), (10.1, 5.1))
    assert embedding.fit(UNIT).spec_.box == Box.unit(2)
    for wrong in ([(0, 1)], [(0, 1), (1, 1)], [(0, 1), (0, np.nan)], "unit"):
        with pytest.raises(DataError, match="box"):
            kind(box=wrong).fit(UNIT)


DECIDED = {
    ProjectionEmbedding: {"n_per_dim": 3},
    MeanMapEmbedding: {"bandwidth": 0.3},
    HistogramEmbedding: {},
    MomentsEmbedding: {"standardize": False},
    SlicedWassersteinEmbedding: {},
    ExtremesEmbedding: {},
    SizeEmbedding: {},
}
WITHOUT_FIT = {
    "projection, auto": ProjectionEmbedding(n_per_dim="auto", box=[(0, 1)] * 2),
    "projection, auto norm": ProjectionEmbedding(n_per_dim=None, max_norm="auto", box=[(0, 1)] * 2),
    "moments": MomentsEmbedding(box=[(0, 1)] * 2),
    "mean map": MeanMapEmbedding(box=[(0, 1)] * 2),
    "words": BagOfWordsEmbedding(n_words=4, box=[(0, 1)] * 2),
    "hdd": HDDEmbedding(bandwidth="auto", box=[(0, 1)] * 2),
    "union": EmbeddingUnion(
        [ProjectionEmbedding(n_per_dim=3), MomentsEmbedding()], box=[(0, 1)] * 2
    ),
    "pca": CoefficientPCA(ProjectionEmbedding(n_per_dim=3), n_components=2, box=[(0, 1)] * 2),
    "shrunk": ShrunkEmbedding(ProjectionEmbedding(n_per_dim=3), box=[(0, 1)] * 2),
    "points": PointTransformer(StandardScaler(), box=[(0, 1)] * 2),
    "points of one scale": PointTransformer(StandardScaler()),
}


def test_transform_without_fit(kind):
    """A box that would be measured needs a fit, whether points are in the unit cube or not."""
    for bags in (UNIT, [[[0.5, 1.5], [0.1, 0.2]]]):
        with pytest.raises(
            NotFittedError, match=f"{kind.func.__name__} is not fitted.*call fit first"
        ):
            kind().transform(bags)
        with pytest.raises(DataError):
            kind().transform(bags)
    if kind.func not in DECIDED:
        return
    outside = [[[0.5, 1.5], [0.1, 0.2]], [[1.0, 1.0]]]
    decided = kind.func(box=[(0, 2), (0, 2)], dtype="float64", **DECIDED[kind.func])
    both = decided.transform(outside)
    np.testing.assert_array_equal(both[:1], decided.transform(outside[:1]))
    np.testing.assert_array_equal(both, clone(decided).fit(UNIT).transform(outside))


@pytest.mark.parametrize("name", WITHOUT_FIT)
def test_nothing_is_learnt_from_the_bags_that_are_transformed(name):
    """Each choice that a fit makes is made by a fit alone, and then kept."""
    embedding = clone(WITHOUT_FIT[name])
    with pytest.raises(NotFittedError, match=f"^{type(embedding).__name__} is not.*call fit first"):
        embedding.transform(UNIT)
    with pytest.raises(NotFittedError):
        make_pipeline(embedding, Ridge()).predict(UNIT)
    assert not hasattr(embedding, "spec_")
    whole = embedding.fit(UNIT).transform(UNIT)
    np.testing.assert_allclose(whole[:1], embedding.transform(UNIT[:1]), rtol=1e-4)


def test_the_coordinates_of_a_fit_are_known(kind):
    """n_features_in_ is there after a fit, of a pipeline that begins with an embedding, too."""
    assert not hasattr(kind(), "n_features_in_")
    assert kind().fit(UNIT).n_features_in_ == 2
    pipeline = make_pipeline(kind(), Ridge()).fit(UNIT, np.arange(len(UNIT)) * 1.0)
    assert pipeline.n_features_in_ == 2


@pytest.mark.long
def test_a_store_decides_as_memory_does(kind, tmp_path):
    """A store's box and bags give the spec that they give in memory; its transform is lazy."""
    store = BagStore.create(tmp_path / "s.zarr", 2, target_names=["y"]).append(
        UNIT, {"y": [1.0, 2.0, 3.0]}
    )
    embedding = kind().fit(store)
    assert embedding.spec_ == kind().fit(store.read()).spec_
    assert embedding.spec_.box == Box.unit(2)
    lazy = features(store, embedding).compute(scheduler="synchronous")
    np.testing.assert_allclose(lazy, embedding.transform(store.read()), atol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_store_is_transformed_lazily(kind, dtype, tmp_path):
    """In blocks of any length, rows have the bits of bags in memory; a product of BLAS nearly."""
    store = stored(tmp_path / "s.zarr", [*UNIT, *UNIT[::-1], UNIT[1]], None, (), chunk_points=40)
    with pytest.raises(NotFittedError, match="call fit first"):
        kind().transform(store)
    embedding = kind(dtype=dtype).fit(store)
    expected = embedding.transform(store.read())
    row_bytes = expected[0].nbytes
    for step, chunks in ((1, (1,) * 7), (3, (3, 3, 1)), (5, (5, 2))):
        with pass_limits(block_bytes=step * row_bytes, block_seconds=60.0, partition_bytes=4000):
            lazy = embedding.transform(store)
            values = lazy.compute(scheduler="synchronous")
        assert (lazy.chunks[0], lazy.shape, lazy.dtype) == (chunks, expected.shape, expected.dtype)
        rounding = 8 * np.finfo(dtype).eps if "CoefficientPCA" in repr(embedding) else 0.0
        np.testing.assert_allclose(values, expected, rtol=0, atol=rounding * np.abs(expected).max())
        assert values.dtype == dtype
    other = stored(tmp_path / "other.zarr", [np.ones((2, 3))], None, ())
    with pytest.raises(DataError, match="dimension 3, the embedding was made for 2"):
        embedding.transform(other)


class _Neighbours:
    """Stands in for kernels: calls them again with what they write next to each of their inputs.

    Compiled loops of which one array may be a neighbour of another go by one number at a time.
    """

    def get(self, kernel):
        return partial(self._call, kernel)

    def _call(self, kernel, begin, end, *arguments):
        before = pickle.dumps(arguments)
        kernel(begin, end, *arguments)
        unwritten = pickle.loads(before)
        places = [place for place, _ in self._arrays(arguments)]
        written = [
            (place, array)
            for (place, array), (_, old) in zip(
                self._arrays(arguments), self._arrays(unwritten), strict=True
            )
            if array.tobytes() != old.tobytes()
        ]
        for place, expected in written:
            for neighbour in places:
                again = list(pickle.loads(before))
                result = self._put_together(again, neighbour, place)
                kernel(begin, end, *again)
                np.testing.assert_array_equal(result, expected)

    def _arrays(self, arguments):
        for i, argument in enumerate(arguments):
            for j, array in enumerate(argument if isinstance(argument, tuple) else [argument]):
                if isinstance(array, np.ndarray) and array.size:
                    yield (i, j), array

    def _put_together(self, arguments, first, second):
        arrays = dict(self._arrays(arguments))
        sizes = [-(-arrays[place].nbytes // 8) for place in (first, second)]
        room = np.empty(sum(sizes) + 8)
        for place, start in ((first, 0), (second, sizes[0])):
            old = arrays[place]
            new = room[start:].view(old.dtype)[: old.size].reshape(old.shape)
            new[:] = old
            i, j = place
            if isinstance(arguments[i], tuple):
                parts = list(arguments[i])
                parts[j] = new
                arguments[i] = tuple(parts)
            else:
                arguments[i] = new
        return new


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_where_arrays_lie_does_not_matter(kind, dtype):
    """Rows have the same bits wherever the system puts the arrays that a kernel takes."""
    spec = kind(box=BOX).fit(UNIT).spec_
    for size in (1, 5, 30):
        bag = Bags.from_list([RNG.random((size, 2))])
        rows = np.empty((1, spec.n_features), dtype)
        token = launching.substitutes.set(_Neighbours())
        try:
            spec.embed(bag, rows)
        finally:
            launching.substitutes.reset(token)


@pytest.mark.long
def test_inside_an_estimator(kind, tmp_path):
    """It learns from memory and from a store alike, and a saved model predicts the same bits."""
    bags, y = labelled_bags(300, most=120)
    if kind.func is SizeEmbedding:
        y = np.log([len(bag) for bag in bags])
    model = DoubleBasisRegressor(
        kind(box=BOX), RandomFourierFeatures(n_features=128), alpha=1.0, precision="float64"
    )
    memory = clone(model).fit(bags[:200], y[:200])
    store = stored(tmp_path / "s.zarr", bags[:200], y[:200])
    fitted = clone(model).fit(store, target="y")
    expected = memory.predict(bags[200:])
    np.testing.assert_allclose(fitted.predict(bags[200:]), expected, rtol=1e-6, atol=1e-8)
    assert np.sqrt(np.mean((expected - y[200:]) ** 2)) < 0.85 * y[200:].std()
    fitted.save(tmp_path / "m.zarr")
    again = load_model(tmp_path / "m.zarr")
    assert again.features_ == fitted.features_
    assert repr(again.embedding) == repr(kind(box=[list(edge) for edge in BOX]))
    np.testing.assert_array_equal(again.predict(bags[200:]), fitted.predict(bags[200:]))


def test_feature_names(kind):
    """One per column, all different; scikit-learn makes data frames with them."""
    embedding = kind(box=BOX).fit(UNIT)
    names = embedding.get_feature_names_out(["u", "v"])
    assert len(set(names)) == len(names) == embedding.spec_.n_features
    frame = embedding.set_output(transform="pandas").transform(UNIT)
    assert frame.columns.tolist() == embedding.get_feature_names_out().tolist()
    with pytest.raises(DataError, match="1 names, points have 2 coordinates"):
        embedding.get_feature_names_out(["u"])
    named = kind(box=BOX).fit(Bags.from_list(UNIT).named(["u", "v"]))
    assert named.get_feature_names_out().tolist() == names.tolist()


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("projection", {"n_per_dim": 2}, ["cosine(0,0)", "cosine(0,1)", "cosine(1,0)"]),
        ("projection", {"n_per_dim": 2, "marginals": 1}, ["cosine[u](0)", "cosine[u](1)"]),
        ("moments", {}, ["mean(u)", "mean(v)", "cov(u,u)", "cov(u,v)", "cov(v,v)"]),
        ("histogram", {"n_bins": 2}, ["histogram0", "histogram1"]),
    ],
)
def test_names_say_what_a_column_is(name, arguments, expected):
    """Basis and index, or moment and coordinates."""
    names = EMBEDDINGS[name](box=BOX, **arguments).fit(UNIT).get_feature_names_out(["u", "v"])
    assert names[: len(expected)].tolist() == expected


def test_labels_that_a_pipeline_would_pair_with_other_bags():
    """A step passes y on in the order it has; the estimator after it knows no ids."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {"id": np.repeat([f"b{i}" for i in range(20)], 5), "x": rng.normal(size=100)}
    )
    groups = table.groupby("id")
    y = groups["x"].mean()
    steps = make_pipeline(MomentsEmbedding(), Ridge(1e-9))
    assert steps.fit(groups, y).score(groups, y) > 0.99
    with pytest.raises(DataError, match="y: its index has the ids of the bags in another order"):
        steps.fit(groups, y.iloc[::-1])
    with pytest.raises(DataError, match="no bag has the id 'c'"):
        steps.fit(groups, y.rename({"b0": "c"}))
