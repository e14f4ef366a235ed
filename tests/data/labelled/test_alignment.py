"""Labels, groups and weights of pandas follow the ids of the bags, never their own order."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from bagbasis import (
    BagbasisWarning,
    Bags,
    BagStore,
    DataError,
    DoubleBasisClassifier,
    DoubleBasisRegressor,
    KernelSmoother,
    MomentsEmbedding,
    ParameterError,
    TripleBasisRegressor,
    as_bags,
    cross_val_score,
    evaluate,
)
from bagbasis.hypotheses import independence_test, two_sample_test
from bagbasis.models import permutation_importance

N, PER_BAG = 60, 40
IDS = {
    "text": [f"p{i}" for i in range(N)],
    "numbers": [7 * i % N for i in range(N)],
    "days": pd.date_range("2026-01-01", periods=N)[::-1].tolist(),
    "two columns": [(i % 6, 10 - i // 6) for i in range(N)],
}


def case(kind: str) -> tuple[pd.DataFrame, pd.Series, list[str]]:
    """Return rows of bags whose spread is the label, the labels by id, and the id's columns."""
    rng = np.random.default_rng(0)
    ids, spread = IDS[kind], rng.uniform(0.5, 3, N)
    keys = ["site", "patient"] if kind == "two columns" else ["id"]
    index = pd.MultiIndex.from_tuples(ids, names=keys) if len(keys) > 1 else pd.Index(ids)
    frames = []
    for first, scale in zip(ids, spread, strict=True):
        values = dict(zip(keys, first if isinstance(first, tuple) else (first,), strict=True))
        points = {"a": rng.normal(0, scale, PER_BAG), "b": rng.normal(5, 1, PER_BAG)}
        frames.append(pd.DataFrame({**values, **points}))
    return pd.concat(frames, ignore_index=True), pd.Series(spread, index), keys


@pytest.fixture(params=IDS)
def labelled(request):
    """Return bags as a groupby, labels in the order of a file, and the same in the bags' order."""
    rows, y, keys = case(request.param)
    groups = rows.groupby(keys if len(keys) > 1 else keys[0])
    sorted_y = y.sort_index()
    assert not np.array_equal(y, sorted_y)
    return groups, y, sorted_y.to_numpy()


def regressor() -> DoubleBasisRegressor:
    return DoubleBasisRegressor(MomentsEmbedding(), alpha=1.0)


@pytest.mark.long
def test_labels_follow_the_ids_of_a_groupby(labelled):
    groups, y, in_order = labelled
    fitted = regressor().fit(groups, y)
    expected = regressor().fit(groups, in_order)
    np.testing.assert_array_equal(fitted.predict(groups), expected.predict(groups))
    assert fitted.score(groups, y) == expected.score(groups, in_order) > 0.8
    assert evaluate(fitted, groups, y).score == expected.score(groups, in_order)


def test_labels_follow_the_ids_of_bags_of_a_frame():
    rows, y, keys = case("text")
    bags = Bags.from_frame(rows, id_column=keys[0])
    assert bags[[5, 2]].ids.tolist() == [sorted(y.index)[5], sorted(y.index)[2]]
    half, of_half = bags[:30] + bags[30:40], y[bags.ids[:40]].sample(frac=1, random_state=0)
    in_order = of_half[half.ids].to_numpy()
    assert regressor().fit(half, of_half).score(half, of_half) == pytest.approx(
        regressor().fit(half, in_order).score(half, in_order)
    )


@pytest.mark.long
@pytest.mark.parametrize("labelled", ["two columns"], indirect=True)
def test_a_frame_of_several_targets_weights_and_groups_follow_the_ids(labelled):
    groups, y, in_order = labelled
    both, both_in_order = pd.DataFrame({"s": y, "t": -y}), np.column_stack([in_order, -in_order])
    weights = pd.Series(np.linspace(0.1, 3, N), y.index)
    patients = pd.Series(np.arange(N) // 3, y.index)
    fitted = regressor().fit(groups, both, sample_weight=weights, groups=patients)
    plain = {"sample_weight": weights.sort_index().to_numpy()}
    expected = regressor().fit(
        groups, both_in_order, groups=patients.sort_index().to_numpy(), **plain
    )
    np.testing.assert_array_equal(fitted.predict(groups), expected.predict(groups))
    assert fitted.score(groups, both, sample_weight=weights) == expected.score(
        groups, both_in_order, **plain
    )
    np.testing.assert_array_equal(
        cross_val_score(regressor(), groups, y, groups=patients, sample_weight=weights),
        cross_val_score(
            regressor(), groups, in_order, groups=patients.sort_index().to_numpy(), **plain
        ),
    )


@pytest.mark.long
def test_classes_responses_and_other_estimators_follow_the_ids():
    rows, y, keys = case("text")
    groups = rows.groupby(keys[0])
    ids = sorted(y.index)
    classes = pd.Series(np.where(y > 1.7, "wide", "narrow"), y.index)
    classifier = DoubleBasisClassifier(MomentsEmbedding(), alpha=1.0).fit(groups, classes)
    assert (
        classifier.score(groups, classes) == classifier.score(groups, classes[ids].tolist()) > 0.8
    )
    smoother = KernelSmoother(MomentsEmbedding()).fit(groups, y)
    assert smoother.score(groups, y) == smoother.score(groups, y[ids].to_numpy()) > 0.8
    rng = np.random.default_rng(1)
    answers = pd.Series([rng.normal(0, scale, 50) for scale in y], y.index)
    triple = TripleBasisRegressor(MomentsEmbedding()).fit(groups, answers)
    in_order = answers[ids].tolist()
    assert triple.score(groups, answers) == triple.score(groups, in_order)
    expected = TripleBasisRegressor(MomentsEmbedding()).fit(groups, in_order)
    np.testing.assert_array_equal(triple.predict(groups), expected.predict(groups))


@pytest.mark.long
def test_intervals_and_importance_follow_the_ids():
    rows, y, keys = case("text")
    groups, patients = rows.groupby(keys[0]), pd.Series(range(N), sorted(y.index)) // 2
    in_order = y.sort_index().to_numpy()
    shuffled = patients.sample(frac=1, random_state=0)
    fitted = regressor().fit(groups, y).conformalize(groups, y, cv=5, groups=shuffled)
    expected = regressor().fit(groups, in_order)
    expected.conformalize(groups, in_order, cv=5, groups=patients.to_numpy())
    np.testing.assert_array_equal(
        fitted.predict_interval(groups, coverage=0.8),
        expected.predict_interval(groups, coverage=0.8),
    )
    drops = permutation_importance(fitted, groups, y, groups=shuffled).drop
    np.testing.assert_array_equal(
        drops, permutation_importance(fitted, groups, in_order, groups=patients.to_numpy()).drop
    )


@pytest.mark.long
def test_an_index_of_other_ids_is_refused_naming_one_of_each_side(labelled):
    groups, y, _ = labelled
    absent, foreign = y.index[7], ("x", "y") if y.index.nlevels > 1 else "nobody"
    keys = [foreign if item == absent else item for item in y.index]
    other = pd.Series(y.to_numpy(), pd.Index(keys, tupleize_cols=True))
    for call in (
        lambda: regressor().fit(groups, other),
        lambda: regressor().fit(groups, y).score(groups, other),
        lambda: regressor().fit(groups, y, groups=other),
        lambda: regressor().fit(groups, y, sample_weight=other),
    ):
        with pytest.raises(DataError) as refused:
            call()
        named = tuple(map(int, absent)) if isinstance(absent, tuple) else absent
        assert repr(getattr(named, "tolist", lambda: named)()) in str(refused.value)  # noqa: B023
        assert repr(foreign) in str(refused.value)


def test_too_few_rows_and_an_id_twice_are_refused():
    rows, y, keys = case("numbers")
    groups = rows.groupby(keys[0])
    with pytest.raises(DataError, match=r"the bag with id 7 has no row \(59 rows, 60 bags\)"):
        regressor().fit(groups, y.drop(7))
    with pytest.raises(DataError, match="its index has 14 twice"):
        regressor().fit(groups, pd.concat([y, y[[14]]]))
    with pytest.raises(DataError, match="no bag has the id 99"):
        regressor().fit(groups, pd.concat([y, pd.Series([1.0], [99])]))
    with pytest.raises(DataError, match="no bag has the id '0'"):  # a text is not the number
        regressor().fit(groups, y.set_axis(y.index.astype(str)))


def test_a_plain_index_is_taken_by_place_with_one_warning_per_argument():
    rows, y, keys = case("text")
    groups, plain = rows.groupby(keys[0]), y.sort_index().reset_index(drop=True)
    with pytest.warns(BagbasisWarning, match="y has the index 0 to 59") as seen:
        fitted = regressor().fit(groups, plain)
    assert len([item for item in seen if "has the index" in str(item.message)]) == 1
    assert fitted.score(groups, y) > 0.8
    with warnings.catch_warnings():
        warnings.simplefilter("error", BagbasisWarning)
        regressor().fit(groups, y)  # ids: no warning
        regressor().fit(list(Bags.from_frame(groups)), plain)  # bags without ids: none


def test_a_plain_index_of_the_same_whole_numbers_is_aligned():
    rows, _, keys = case("numbers")
    groups = rows.groupby(keys[0], sort=False)
    plain = rows.groupby(keys[0])["a"].std().reset_index(drop=True)  # row i is of the id i
    fitted = regressor().fit(groups, plain)
    assert fitted.score(groups, plain) > 0.8


def test_levels_of_an_index_are_found_by_their_names():
    rows, y, keys = case("two columns")
    groups, turned = rows.groupby(keys), y.reorder_levels([1, 0])
    np.testing.assert_array_equal(
        regressor().fit(groups, turned).predict(groups), regressor().fit(groups, y).predict(groups)
    )


@pytest.mark.long
def test_a_store_keeps_the_ids_of_bags_and_aligns_with_them(tmp_path):
    rows, y, keys = case("text")
    groups = rows.groupby(keys[0])
    ids = sorted(y.index)
    store = BagStore.create(tmp_path / "s.zarr", 2, target_names=["y"], box=[(-20, 20)] * 2)
    store.append(groups, targets={"y": y})
    assert store.ids().tolist() == ids
    np.testing.assert_array_equal(store.targets()[:, 0], y[ids])
    frame = BagStore.create(tmp_path / "f.zarr", 2, target_names=["y"], box=[(-20, 20)] * 2)
    frame.append(list(Bags.from_frame(groups)), y.to_frame("y"), ids=ids)
    np.testing.assert_array_equal(frame.targets(), store.targets())
    with pytest.raises(DataError, match="'p3' has no row"):
        frame.append(groups, targets=y.drop("p3"))
    model = regressor().fit(store, target="y", sample_weight=pd.Series(1.0, y.index))
    assert evaluate(model, store, y).score == evaluate(model, store, y[ids].to_numpy()).score
    weights = pd.Series(np.linspace(1, 2, N), y.index)
    assert (
        evaluate(model, store, sample_weight=weights).score
        == evaluate(model, store, sample_weight=weights[ids].to_numpy()).score
    )


def test_values_follow_the_index_of_labels_of_bags_without_ids():
    """Weights in another order than the labels were those of other bags, without a word."""
    rows, y, keys = case("text")
    bags = [group[["a", "b"]].to_numpy() for _, group in rows.groupby(keys[0], sort=False)]
    weights = pd.Series(np.linspace(0.1, 5, N), y.index)
    turned = weights.sample(frac=1, random_state=0)
    expected = regressor().fit(bags, y, sample_weight=weights.to_numpy())
    fitted = regressor().fit(bags, y, sample_weight=turned)
    np.testing.assert_array_equal(fitted.coef_, expected.coef_)
    assert fitted.score(bags, y, sample_weight=turned) == expected.score(
        bags, y, sample_weight=weights.to_numpy()
    )
    with pytest.raises(DataError, match=r"sample_weight has the index .* some labels are in both"):
        regressor().fit(bags, y, sample_weight=turned.rename({"p3": "p99"}))


def test_tests_pair_mappings_of_bags_by_id():
    """Bags as a mapping were paired with other variables and labels by position, in silence."""
    rng = np.random.default_rng(0)
    bags = {name: rng.normal(0, 1 + i / N, (9, 1)) for i, name in enumerate(IDS["text"])}
    y = pd.Series(np.arange(N) / N, bags)
    owners = y * N // 2
    turned, of_turned = y.sample(frac=1, random_state=0), owners.sample(frac=1, random_state=1)
    expected = independence_test(bags, y.to_numpy(), groups=owners.to_numpy()).statistic
    for other in (turned, turned.to_dict()):
        for groups in (of_turned, of_turned.to_dict()):
            assert independence_test(bags, other, groups=groups).statistic == expected
    reversed_bags = dict(reversed(bags.items()))
    both = [independence_test(bags, other).statistic for other in (bags, reversed_bags)]
    assert both[0] == both[1]
    parts = [{k: bags[k] for k in IDS["text"][half]} for half in (slice(30), slice(30, N))]
    of_parts = [owners[[*part]] for part in parts]
    shuffled = [labels.sample(frac=1, random_state=2) for labels in of_parts]
    p = [two_sample_test(*parts, groups=groups).p_value for groups in (of_parts, shuffled)]
    assert p[0] == p[1]
    with pytest.raises(DataError, match="'p9' has no row"):
        independence_test(bags, y.drop("p9"))


@pytest.mark.long
def test_tests_pair_variables_and_labels_by_id():
    rows, y, keys = case("text")
    groups, ids = rows.groupby(keys[0]), sorted(y.index)
    result = independence_test(groups, y, seed=0)
    assert result.p_value == independence_test(groups, y[ids].to_numpy(), seed=0).p_value < 0.01
    bags = Bags.from_frame(groups)
    within = pd.Series(np.arange(N) % 3, y.index)
    plain = independence_test(bags, y[ids].to_numpy(), within=within[ids].to_numpy(), seed=0)
    assert independence_test(groups, y, within=within, seed=0).statistic == plain.statistic
    turned = bags[np.arange(N)[::-1]]
    assert (
        independence_test(bags, turned, seed=0).statistic
        == independence_test(bags, bags, seed=0).statistic
    )
    points, labels = y.to_frame(), y.sample(frac=1, random_state=3)
    assert independence_test(points, labels, seed=0).p_value < 0.01
    first, second = bags[:30], bags[30:]
    owner = pd.Series(np.arange(N) // 2, ids)
    parts = owner[:30].sample(frac=1, random_state=0), owner[30:].sample(frac=1, random_state=0)
    expected = two_sample_test(first, second, groups=(owner[:30].to_numpy(), owner[30:].to_numpy()))
    assert two_sample_test(first, second, groups=parts).p_value == expected.p_value
    with pytest.raises(DataError, match="'p9' has no row"):
        independence_test(groups, y.drop("p9"))


# ------------------------------------------------------------------ labels in the frame


def frame_with_labels() -> pd.DataFrame:
    rows, y, _ = case("text")
    names = pd.Series({name: f"s{i // 4}" for i, name in enumerate(y.index)})
    return rows.assign(
        age=rows["id"].map(y), site=rows["id"].map(names), dx=rows["id"].map(y > 1.7), w=1.0
    )


@pytest.mark.long
def test_target_takes_the_label_out_of_the_frame():
    frame = frame_with_labels()
    groups, y = frame.groupby("id"), frame.groupby("id")["age"].first()
    bare = frame[["id", "a", "b"]].groupby("id")
    columns = frame[["id", "a", "b", "age"]].groupby("id")
    fitted = regressor().fit(columns, target="age")
    assert list(fitted.feature_names_in_) == ["a", "b"]
    assert fitted.target_names_ == ("age",)
    expected = regressor().fit(bare, y).predict(bare)
    np.testing.assert_array_equal(fitted.predict(bare), expected)
    np.testing.assert_array_equal(fitted.predict(columns), expected)
    assert fitted.score(columns) == fitted.score(bare, y) == fitted.score(columns, y)
    assert evaluate(fitted, columns).score == fitted.score(columns)
    chosen = groups[["a", "b"]]  # the label is in the frame, and no coordinate
    np.testing.assert_array_equal(regressor().fit(chosen, target="age").predict(chosen), expected)


@pytest.mark.long
def test_several_targets_groups_and_weights_are_named_by_column():
    frame = frame_with_labels().assign(twice=lambda rows: 2 * rows["age"])
    groups = frame.drop(columns="dx").groupby("id")
    fitted = regressor().fit(groups, target=["age", "twice"], groups="site", sample_weight="w")
    assert list(fitted.feature_names_in_) == ["a", "b"]
    assert fitted.predict(groups).shape == (N, 2)
    assert fitted.score(groups) > 0.8
    single = frame[["id", "a", "b", "age", "site", "w"]].groupby("id")
    scores = cross_val_score(regressor(), single, target="age", groups="site", sample_weight="w")
    y = frame.groupby("id")[["age", "site"]].first()
    bare = frame[["id", "a", "b"]].groupby("id")
    plain = cross_val_score(regressor(), bare, y["age"], groups=y["site"], sample_weight=np.ones(N))
    np.testing.assert_array_equal(scores, plain)
    dx = frame[["id", "a", "b", "dx"]].groupby("id")
    classifier = DoubleBasisClassifier(MomentsEmbedding()).fit(dx, target="dx")
    assert set(classifier.predict(dx)) <= {False, True}
    assert classifier.score(dx) > 0.8


def test_a_label_that_changes_within_a_bag_is_refused_by_its_id():
    frame = frame_with_labels()[["id", "a", "b", "age"]]
    frame.loc[frame.index[frame["id"] == "p31"][5], "age"] = 9.0
    with pytest.raises(DataError, match="column 'age' has several values in the bag with id 'p31'"):
        regressor().fit(frame.groupby("id"), target="age")
    frame.loc[frame.index[frame["id"] == "p31"][5], "age"] = np.nan
    with pytest.raises(DataError, match="'p31'"):
        regressor().fit(frame.groupby("id"), target="age")
    with pytest.raises(DataError, match=r"no column 'agee' \(did you mean 'age'\?\)"):
        regressor().fit(frame.groupby("id"), target="agee")
    with pytest.raises(ParameterError, match="y and target"):
        regressor().fit(frame.groupby("id"), np.zeros(N), target="age")


@pytest.mark.long
def test_a_polars_groupby_gives_its_ids_and_columns():
    polars = pytest.importorskip("polars")
    frame = frame_with_labels()[["id", "a", "b", "age"]]
    groups = polars.from_pandas(frame).group_by("id", maintain_order=True)
    y = frame.groupby("id")["age"].first()
    bare = polars.from_pandas(frame.drop(columns="age")).group_by("id", maintain_order=True)
    by_id = regressor().fit(bare, y)
    assert by_id.score(bare, y) > 0.8
    np.testing.assert_array_equal(
        regressor().fit(groups, target="age").predict(bare), by_id.predict(bare)
    )


# ------------------------------------------------------------------ a label left in the frame


def test_a_coordinate_that_is_the_label_is_warned_of():
    rng = np.random.default_rng(0)
    age = rng.uniform(20, 80, N).round()
    frames = [
        pd.DataFrame({"id": i, "pulse": rng.normal(70, 10, 12), "age": age[i]}) for i in range(N)
    ]
    groups = pd.concat(frames).groupby("id")
    leak = "coordinate 'age' is constant in every bag and equals the target 'age'"
    with pytest.warns(BagbasisWarning, match=leak):
        regressor().fit(groups, groups["age"].first())
    with pytest.warns(BagbasisWarning, match=leak):
        cross_val_score(regressor(), groups, groups["age"].first())
    arrays = list(Bags.from_frame(groups))
    with pytest.warns(
        BagbasisWarning, match="coordinate 1 is constant in every bag and equals column 1 of y"
    ):
        regressor().fit(arrays, np.column_stack([rng.normal(size=N), age]))
    old = np.where(age > 50, "old", "young")
    coded = [
        np.c_[bag[:, :1], np.full(12, first == "old")]
        for bag, first in zip(arrays, old, strict=True)
    ]
    with pytest.warns(BagbasisWarning, match="coordinate 1 .* has one value per class of y"):
        DoubleBasisClassifier(MomentsEmbedding()).fit(coded, old)


def test_a_covariate_that_is_not_the_label_is_not_warned_of():
    rng = np.random.default_rng(0)
    age = rng.uniform(20, 80, N).round()
    bags = [np.c_[rng.normal(70, 10, 12), np.full(12, item)] for item in age]
    with warnings.catch_warnings():
        warnings.simplefilter("error", BagbasisWarning)
        regressor().fit(bags, age + rng.normal(size=N))
        regressor().fit(bags, age**2)


def tables_of(labels: pd.DataFrame) -> list:
    """Return labels with a column of ids as tables of three libraries, and as a mapping."""
    tables = [labels, pl.from_pandas(labels), pa.Table.from_pandas(labels, preserve_index=False)]
    return [*tables, dict(zip(labels["id"], labels.iloc[:, 1], strict=True))]


def test_label_tables_with_a_column_of_ids():
    """The column is not a target, and no order: labels, classes and weights go by it."""
    rows, y, _ = case("text")
    groups, ids = rows.groupby("id"), pd.Index(y.index, name="id")
    expected = regressor().fit(groups, y).predict(groups)
    for table in tables_of(pd.DataFrame({"y": y.to_numpy()}, ids).reset_index()):
        np.testing.assert_array_equal(regressor().fit(groups, table).predict(groups), expected)
    classes = pd.Series(np.where(y > 1.5, "wide", "narrow"), ids, name="class")
    classifier = DoubleBasisClassifier(MomentsEmbedding(), alpha=1.0)
    expected = classifier.fit(groups, classes).predict(groups)
    for table in tables_of(classes.reset_index()):
        np.testing.assert_array_equal(classifier.fit(groups, table).predict(groups), expected)
    weights = pd.Series(np.arange(1.0, N + 1), ids, name="w")
    expected = regressor().fit(groups, y, sample_weight=weights).predict(groups)
    for table in tables_of(weights.reset_index()):
        fitted = regressor().fit(groups, y, sample_weight=table)
        np.testing.assert_array_equal(fitted.predict(groups), expected)


def test_a_mapping_from_the_ids_of_a_store(tmp_path):
    """Values by id, such as weights, are those of the bags, as for bags in memory."""
    rows, y, _ = case("text")
    store = BagStore.create(tmp_path / "s.zarr", 2, target_names=["y"])
    store.append(rows.groupby("id"), targets={"y": y})
    weights = {key: 1.0 + place for place, key in enumerate(y.index)}
    in_order = [weights[key] for key in store.ids().tolist()]
    expected = regressor().fit(store, sample_weight=in_order).coef_
    by_id = regressor().fit(store, sample_weight=weights).coef_
    np.testing.assert_array_equal(by_id, expected)


def test_mapping_for_a_store_and_for_bags_without_ids(tmp_path):
    """Its keys are ids, which arrays do not have."""
    rows, y, _ = case("text")
    model = regressor().fit(rows.groupby("id"), y)
    store = BagStore.create(tmp_path / "s.zarr", 2).append(rows.groupby("id"))
    in_order = evaluate(model, store, y[store.ids().tolist()].to_numpy())
    assert evaluate(model, store, dict(reversed(dict(y).items()))).values() == in_order.values()
    bags = [group[["a", "b"]].to_numpy() for _, group in rows.groupby("id")]
    for arguments in ({"y": dict(y)}, {"y": y.to_numpy(), "sample_weight": dict(y)}):
        with pytest.raises(DataError, match="ids of bags, and these bags have none"):
            regressor().fit(bags, **arguments)


def test_coordinate_that_is_a_line_of_the_label_is_warned_of():
    rows, y, _ = case("text")
    rows["f"] = 32 + 1.8 * y[rows["id"]].to_numpy()
    with pytest.warns(BagbasisWarning, match="'f' is constant in every bag and is a linear functi"):
        regressor().fit(rows.groupby("id"), y)


@pytest.mark.parametrize(
    "ids", [list("abcdefghij"), list(range(10)), [(i, "x") for i in range(10)]]
)
def test_ids_of_a_series_and_of_a_mapping_of_arrays(ids):
    """Labels and responses in another order go to their bags."""
    rng = np.random.default_rng(0)
    bags, y = [rng.normal(i, 1, (5, 2)) for i in range(10)], np.arange(10.0)
    index = pd.MultiIndex.from_tuples(ids) if isinstance(ids[0], tuple) else ids
    expected = regressor().fit(bags, y).predict(bags)
    labels = pd.Series(y, index).iloc[::-1]
    for X in (pd.Series(bags, index), dict(zip(ids, bags, strict=True))):
        for values in (labels, dict(labels), y):
            np.testing.assert_array_equal(regressor().fit(X, values).predict(X), expected)
    responses = dict(zip(reversed(ids), reversed(bags), strict=True))
    densities = [
        TripleBasisRegressor(MomentsEmbedding(), alpha=1.0).fit(X, Y).predict(bags)
        for X, Y in ((bags, bags), (dict(zip(ids, bags, strict=True)), responses))
    ]
    np.testing.assert_array_equal(*densities)


def test_a_series_with_a_label_twice_has_no_ids():
    bags = pd.Series([np.full((3, 2), float(i)) for i in range(3)], ["a", "a", "b"])
    assert as_bags(bags).bag_ids is None


def test_an_index_that_counts_arrays_is_no_id_of_a_store(tmp_path):
    """Appended twice, and labelled by an index of other names, with a warning."""
    bags, y = pd.Series([np.full((3, 2), float(i)) for i in range(8)]), np.arange(8.0)
    store = BagStore.create(tmp_path / "s.zarr", 2, target_names=["y"])
    for _ in range(2):
        store = store.append(bags, targets=pd.DataFrame({"y": y}).iloc[::-1])
    np.testing.assert_array_equal(store.targets()[:, 0], [*y, *y])
    with pytest.warns(
        BagbasisWarning, match="y has the index 'p0', …, and the bags have the ids 0"
    ):
        fitted = regressor().fit(bags, pd.Series(y, [f"p{i}" for i in range(8)]))
    np.testing.assert_array_equal(fitted.predict(bags), regressor().fit(bags, y).predict(bags))
