"""A bag that is much wider than all others sets the measured box alone: a warning names it."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest

from bagbasis import (
    BagbasisWarning,
    Bags,
    BagStore,
    DoubleBasisClassifier,
    DoubleBasisRegressor,
    MomentsEmbedding,
    ProjectionEmbedding,
    TripleBasisRegressor,
)

RNG = np.random.default_rng(0)
N, WILD = 40, 23
SPREAD = RNG.uniform(0.5, 2, N)
BAGS = [RNG.normal(0, s, (12, 2)) * [1, 30] for s in SPREAD]


def with_wild(times, at=WILD, bags=BAGS):
    return [bag * [1, times] if i == at else bag for i, bag in enumerate(bags)]


def stored(bags, url, **arguments):
    store = BagStore.create(url, 2, target_names=["y"], dtype="float64", **arguments)
    for a, b in ((0, 5), (5, 30), (30, N)):
        store.append(bags[a:b], {"y": SPREAD[a:b]})
    return store


def fitted(data, **arguments):
    embedding = ProjectionEmbedding(n_per_dim=3, **arguments)
    labels = {"target": "y"} if isinstance(data, BagStore) else {"y": SPREAD}
    return DoubleBasisRegressor(embedding, alpha=1.0).fit(data, **labels)


@pytest.mark.parametrize("kind", ["memory", "far from 0", "ids", "names", "store"])
def test_wide_bag_is_named(kind, tmp_path):
    """With its coordinate, in memory and in a store, which measure one box."""
    offset = np.array([0, 1e7 if kind == "far from 0" else 0])
    wild = [bag + offset for bag in with_wild(1e6)]
    made = Bags.from_list(wild)
    data = {
        "memory": lambda: wild,
        "far from 0": lambda: wild,
        "ids": lambda: Bags(made.points, made.offsets, ids=[f"p{i}" for i in range(N)]),
        "names": lambda: made.named(["a", "b"]),
        "store": lambda: stored(wild, tmp_path / "s.zarr"),
    }[kind]()
    bag = {"ids": r"bag 23 \(id p23\)", "store": r"bag 23 \(id 23\)"}.get(kind, "bag 23")
    coordinate = "'b'" if kind == "names" else "1"
    with pytest.warns(BagbasisWarning, match=f"{bag} sets the box alone: coordinate {coordinate}"):
        model = fitted(data)
    with pytest.warns(BagbasisWarning, match="sets the box alone"):
        box = ProjectionEmbedding(n_per_dim=3).fit(wild).spec_.box
    assert model.model_.features.embedding.box == box


@pytest.mark.parametrize(
    "bags",
    [
        BAGS,
        with_wild(30),
        [bag * 10.0 ** (i % 7) for i, bag in enumerate(BAGS)],
        [np.concatenate([bag, [[0, 5000 * (i % 8 == 0)]]]) for i, bag in enumerate(BAGS)],
        with_wild(1e6, bags=[bag * [1, 0] for bag in BAGS]),
        with_wild(1e6)[WILD - 3 : WILD + 4],
    ],
    ids=["ordinary", "some", "decades", "in many bags", "constant", "few bags"],
)
def test_no_warning(bags):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MomentsEmbedding().fit(bags)


CODE = "is {code} in {n} of 40 bags looked at, and all its other values lie within .* missing"


@pytest.mark.parametrize("kind", ["memory", "store", "names"])
@pytest.mark.parametrize(("code", "n"), [(-99999, 2), (-99999, 40), (1e20, 7)])
def test_a_code_for_missing_values_is_named(code, n, kind, tmp_path):
    """The same far value in several bags, or in all: an export wrote it for cells without one."""
    coded = [np.r_[bag, [[0, code]]] if i < n else bag for i, bag in enumerate(BAGS)]
    data = {
        "memory": lambda: coded,
        "names": lambda: Bags.from_list(coded).named(["a", "b"]),
        "store": lambda: stored(coded, tmp_path / "s.zarr"),
    }[kind]()
    message = CODE.format(code=re.escape(f"{code:.7g}"), n=n)
    coordinate = "'b'" if kind == "names" else "1"
    with pytest.warns(BagbasisWarning, match=f"coordinate {coordinate} {message}") as heard:
        fitted(data)
    assert len(heard) == 1


@pytest.mark.parametrize(
    "bags",
    [
        [np.clip(bag, -1, 1) + 1e6 for bag in BAGS],
        [np.round(bag) for bag in BAGS],
        [bag * [1, 0] for bag in BAGS],
        [np.exp(3 * bag / 30) for bag in BAGS],
        [(bag > 0) * 1e9 for bag in BAGS],
    ],
    ids=["clipped", "whole numbers", "constant", "heavy tails", "two values"],
)
def test_repeated_ends_are_no_code(bags):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MomentsEmbedding().fit(bags)


def test_no_warning_with_a_box(tmp_path):
    box = [(-9, 9), (-300, 300)]
    bags = with_wild(1e6)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ProjectionEmbedding(n_per_dim=3, box=box).fit(bags)
    with pytest.warns(BagbasisWarning) as heard:
        fitted(stored(bags, tmp_path / "s.zarr", box=box))
    assert not any("sets the box alone" in str(line.message) for line in heard)


MIXED = BAGS[:9] + [bag * [1, 1e6] for bag in BAGS[:3]] + BAGS[9:]
PART = np.insert(SPREAD, [9] * 3, np.nan)
UNLABELLED = r"bag 9( \(id 9\))? has no label, and makes the box 5.*e\+05 times wider: .* 1 reaches"


def in_store(bags, y, url, **arguments):
    store = BagStore.create(url, 2, target_names=["y"], dtype="float64", **arguments)
    store.append(bags, {"y": y})
    return store


@pytest.mark.parametrize("kind", ["memory", "store", "classes", "responses"])
def test_wide_bags_without_a_label_are_named(kind, tmp_path):
    """Several of them, which are not rare; the numbers stay as they are."""
    moments = MomentsEmbedding()
    calls = {
        "memory": lambda: DoubleBasisRegressor(moments, alpha=1.0).fit(MIXED, PART),
        "store": lambda: DoubleBasisRegressor(moments, alpha=1.0).fit(
            in_store(MIXED, PART, tmp_path / "s.zarr"), target="y"
        ),
        "classes": lambda: DoubleBasisClassifier(moments, alpha=1.0).fit(
            MIXED, [None if np.isnan(y) else "ab"[int(y > 1)] for y in PART]
        ),
        "responses": lambda: TripleBasisRegressor(moments, alpha=1.0).fit(
            MIXED,
            responses=[None if np.isnan(y) else b for b, y in zip(MIXED, PART, strict=True)],
        ),
    }
    with pytest.warns(BagbasisWarning, match=UNLABELLED) as heard:
        calls[kind]()
    assert not any("sets the box alone" in str(warning.message) for warning in heard)


def test_memory_and_store_warn_alike(tmp_path):
    """One bag far away, and one of a labelled range of its own: the same bag, factor and ends."""
    far = [*BAGS, BAGS[0] + [5e4, 0]]
    y = np.append(SPREAD, np.nan)
    messages = []
    for data, labels in ((far, {"y": y}), (in_store(far, y, tmp_path / "s"), {"target": "y"})):
        with pytest.warns(BagbasisWarning, match=r"bag 40 .*coordinate 0 reaches 5e\+04") as heard:
            DoubleBasisRegressor(MomentsEmbedding(), alpha=1.0).fit(data, **labels)
        message = next(str(w.message) for w in heard if "has no label" in str(w.message))
        messages.append(message.split(": ", 1)[1].replace(" (id 40)", ""))
    assert messages[0] == messages[1]


def test_narrow_or_boxed_bags_without_a_label_are_not(tmp_path):
    """Nor where the labelled bags reach as far, nor bags of weight 0, which no box holds."""
    wide = [*BAGS[:9], BAGS[0] * [1, 3], *BAGS[9:]]
    single = np.insert(SPREAD, 9, np.nan)
    some = [bag * [1, 1e6 if i % 3 else 1] for i, bag in enumerate(BAGS)]
    both = [*some[:9], *MIXED[9:12], *some[9:]]
    box = MomentsEmbedding(box=[(-9, 9), (-300, 300)])
    zero = np.where(np.isnan(PART), 0.0, 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*outside the box")
        for embedding, bags, y in (
            (MomentsEmbedding(), wide, single),
            (MomentsEmbedding(), both, PART),
            (box, MIXED, PART),
        ):
            DoubleBasisRegressor(embedding, alpha=1.0).fit(bags, y)
        DoubleBasisRegressor(MomentsEmbedding(), alpha=1.0).fit(
            MIXED, np.nan_to_num(PART), sample_weight=zero
        )


def test_wide_response_of_weight_0_is_named(tmp_path):
    third = ProjectionEmbedding(n_per_dim=3)
    model = TripleBasisRegressor(MomentsEmbedding(), response_embedding=third, alpha=1.0)
    zero, bags = np.where(np.isnan(PART), 0.0, 1.0), BAGS[:9] + BAGS[:3] + BAGS[9:]
    store = BagStore.create(tmp_path / "s.zarr", 2, response_dims=2, dtype="float64")
    store.append(bags, responses=MIXED)
    match = r"has weight 0, and its response makes the box of the responses 5.*e\+05 times wider"
    for data, arguments in ((bags, {"responses": MIXED}), (store, {})):
        with pytest.warns(BagbasisWarning, match=match):
            model.fit(data, sample_weight=zero, **arguments)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(bags, responses=bags, sample_weight=zero)


def test_a_coordinate_for_each_gene(tmp_path):
    """Bags of more than 10,000 coordinates are fitted in memory and from a store."""
    rng, y = np.random.default_rng(1), SPREAD[:20]
    bags = [rng.normal(s, 1, (2, 10_001)).astype(np.float32) for s in y]
    store = BagStore.create(tmp_path / "genes.zarr", 10_001, target_names=["y"])
    store = store.append(bags, {"y": y})
    model = DoubleBasisRegressor(MomentsEmbedding(covariance=False), False, alpha=1.0)
    predicted = model.fit(bags, y).predict(bags)
    assert np.corrcoef(predicted, y)[0, 1] > 0.9
    of_store = model.fit(store).predict(store)
    np.testing.assert_allclose(np.asarray(of_store).ravel(), predicted, rtol=1e-4)
