"""What was taken in silence, or refused without a name, says now what it is and what to do."""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis import (
    BagbasisError,
    Bags,
    BagStore,
    Box,
    DataError,
    DoubleBasisClassifier,
    DoubleBasisRegressor,
    KernelSmoother,
    ParameterError,
    ProjectionEmbedding,
    cross_val_score,
    evaluate,
    load_model,
)
from bagbasis.jobs.runs import runs_in
from bagbasis.models import Search, iter_predictions, permutation_importance, tune
from bagbasis.operations import Registry
from tests.contract.world import World

MASKED = np.ma.masked_array(np.ones((6, 2)), mask=np.eye(6, 2))

SUBSETS = "subset is ''; expected one of \\['all', 'holdout', 'train'\\]"
EMPTY_URL = "'' is not a URL; expected a string or a path"
# an empty text is no way to leave something out, and names nothing
EMPTY_TEXTS = [
    (lambda w: evaluate(w.regressor, w.store, subset=""), f"{SUBSETS} or None"),
    (lambda w: permutation_importance(w.regressor, w.store, subset=""), f"{SUBSETS} or None"),
    (lambda w: list(iter_predictions(w.regressor, w.store, subset="")), SUBSETS),
    (lambda w: w.unfitted().fit(w.store, target="y", groups=""), "no target ''"),
    (lambda w: w.unfitted().fit(w.store, target="y", groups="x"), "no target 'x'"),
    (lambda w: cross_val_score(w.unfitted(), w.store, target="y", groups=""), "no target ''"),
    (lambda w: cross_val_score(w.unfitted(), w.store, target=""), "no target ''"),
    (lambda w: evaluate(w.regressor, w.store, sample_weight=""), "no target ''"),
    (lambda w: w.regressor.score(w.store, sample_weight=""), "no target ''"),
    (lambda w: permutation_importance(w.regressor, w.store, groups=""), "no target ''"),
    (
        lambda w: tune(w.unfitted(), w.store, search=Search([w.embedding]), target="y", groups=""),
        "no target ''",
    ),
    (
        lambda w: tune(
            w.unfitted(), w.store, search=Search([w.embedding]), target="y", checkpoints=""
        ),
        "checkpoints is ''; expected a URL or a path",
    ),
    (lambda w: w.unfitted().fit(w.store, target="y", checkpoints=""), "a URL or a path"),
    (lambda w: BagStore.create("", 2), "url is ''; expected a URL or a path"),
    (lambda w: BagStore.open(""), EMPTY_URL),
    (lambda w: w.regressor.save(""), "url is ''; expected a URL or a path"),
    (lambda w: load_model(""), "url is ''; expected a URL or a path"),
    (lambda w: Registry(""), "url is ''; expected a URL or a path"),
    (lambda w: runs_in(""), "root is ''; expected a URL or a path"),
]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    return World(tmp_path_factory.mktemp("named"))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda w: Bags.from_list([w.arrays[0], MASKED]), "bag 1: 2 values are masked"),
        (lambda w: Bags(MASKED, [0, 6]), "points: 2 values are masked"),
        (
            lambda w: w.unfitted().fit(w.arrays, np.ma.masked_less(w.y, 0.5)),
            "y: .* values are masked",
        ),
        (
            lambda w: w.growing.append(
                w.arrays, {"y": np.ma.masked_less(w.y, 0.5), "c": w.classes}
            ),
            "target 'y': .* values are masked",
        ),
        *[
            (
                lambda w, kind=kind: kind().fit(w.arrays, [*w.answers[:-1], np.ones((2, 1))]),
                "with responses=",
            )
            for kind in (KernelSmoother, DoubleBasisRegressor, DoubleBasisClassifier)
        ],
        (lambda w: KernelSmoother().fit(w.arrays, Bags.from_list(w.answers)), "with responses="),
        (
            lambda w: DoubleBasisRegressor("projections").fit(w.arrays, w.y),
            r"embedding is 'projections' \(did you mean 'projection'\?\); expected an Embedding",
        ),
        (
            lambda w: DoubleBasisRegressor(ProjectionEmbedding).fit(w.arrays, w.y),
            "embedding is <class .*; expected an Embedding such as ProjectionEmbedding",
        ),
        (
            lambda w: BagStore.create(w.new(), 2, class_names={"a": "xyz"}, target_names=["a"]),
            "class_names is .*; expected a mapping",
        ),
        (
            lambda w: BagStore.create(w.new(), 2, target_names=[1]),
            r"target_names is \[1\]; expected a string or a list of strings",
        ),
        (lambda w: BagStore.create(w.new(), 10**9), "n_dims is 1000000000; expected .* to 10000"),
        (lambda w: Box.unit(10**9), "n_dims is 1000000000"),
        (lambda w: BagStore.open("a\0b"), "is not a URL"),
        (
            lambda w: w.triple.predict_density(w.arrays, grid=1.5),
            "grid is 1.5; expected an integer",
        ),
        (lambda w: w.store.read(True), "start is True; expected an integer"),
        *EMPTY_TEXTS,
    ],
)
def test_what_is_refused_by_name(world, call, message):
    """The message names the parameter, and what is expected of it."""
    with pytest.raises(BagbasisError, match=message):
        call(world)


def test_ids_at_the_end_of_the_integers(world):
    """Behind the largest integer no id follows by itself, but others can be given."""
    store = BagStore.create(world.new(), 2).append(world.arrays[:1], ids=[2**63 - 1])
    with pytest.raises(DataError, match="no integer follows the largest id 9223372036854775807"):
        store.append(world.arrays[:1])
    assert store.append(world.arrays[:1], ids=[7]).ids().tolist() == [2**63 - 1, 7]


def test_ids_are_kept_as_they_are(world):
    """A NUL at the end stays; numbers among texts are not texts."""
    store = BagStore.create(world.new(), 2).append(world.arrays[:2], ids=["z\0", "z"])
    assert store.ids().tolist() == ["z\0", "z"]
    with pytest.raises(DataError, match="expected integers or strings"):
        store.append(world.arrays[:2], ids=["a", 1])


def test_penalties_may_be_an_array(world):
    """As a list is."""
    grid = [0.1, 1.0]
    fitted = [
        DoubleBasisRegressor(world.embedding, world.second, alpha=a) for a in (grid, np.array(grid))
    ]
    first, second = (model.fit(world.arrays, world.y) for model in fitted)
    np.testing.assert_array_equal(first.coef_, second.coef_)
    second.save(world.new())
    with pytest.raises(ParameterError, match=r"alpha is .*; expected a number ≥ 0 or a list"):
        DoubleBasisRegressor(alpha=np.array(["a"])).fit(world.arrays, world.y)
