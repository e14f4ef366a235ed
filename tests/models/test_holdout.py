"""`holdout=` by groups and by time: what is left out, of which fits, and what is refused."""

from __future__ import annotations

import datetime
import shutil

import numpy as np
import pandas as pd
import pytest

from bagbasis import (
    BagbasisWarning,
    BagStore,
    DataError,
    DoubleBasisRegressor,
    KernelSmoother,
    ParameterError,
    ProjectionEmbedding,
    RandomFourierFeatures,
    evaluate,
    load_model,
    merge_stores,
)
from bagbasis.data.labelled.holdout import Holdout
from bagbasis.ingest import ingest_frame
from bagbasis.models import Search, judge_fit, tune
from tests.oracles.labelled import LabelledBags, labelled_bags
from tests.oracles.planned import planned, posed

N = 240
BAGS, Y = labelled_bags(N, most=12)
PATIENT = np.arange(N) // 6 % 20 - 3
DAY = 20_400.0 + np.random.default_rng(3).permutation(N) / 2
MONTHS = [str(datetime.date(1970, 1, 1) + datetime.timedelta(int(day)))[:7] for day in DAY]
MONTH_NAMES = sorted(set(MONTHS))
NAMES = ["y", "patient", "day", "month", "sparse", "two"]
LATE = "2026-01-10"
DAY_OF_LATE = 20_463
BY_GROUPS = {"fraction": 0.2, "groups": "patient"}


def append(store, n=N):
    columns = [Y, PATIENT, DAY, MONTHS, np.where(np.arange(N) == 7, np.nan, 1.0), PATIENT > -3]
    return store.append(
        BAGS[:n], {name: column[:n] for name, column in zip(NAMES, columns, strict=True)}
    )


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    url = tmp_path_factory.mktemp("holdout") / "s.zarr"
    made = BagStore.create(url, 2, target_names=NAMES, class_names={"month": MONTH_NAMES})
    return append(made)


def small(alpha="gcv", **parameters):
    bases = ProjectionEmbedding(n_per_dim=3), RandomFourierFeatures(n_features=32)
    return DoubleBasisRegressor(*bases, alpha=alpha, precision="float64", **parameters)


def members(store, holdout):
    bags = LabelledBags(store)
    return Holdout.of(holdout).resolve(bags).split(bags).members(0, store.n_bags)


BY_TIME = {
    "a date": ({"after": LATE, "time": "day"}, DAY > DAY_OF_LATE),
    "a date of YAML": ({"after": datetime.date(2026, 1, 10), "time": "day"}, DAY > DAY_OF_LATE),
    "a number": ({"after": 20_463.2, "time": "day"}, DAY > 20_463.2),
    "a class": ({"after": "2026-01", "time": "month"}, np.array(MONTHS) > "2026-01"),
}


@pytest.mark.parametrize(("holdout", "late"), BY_TIME.values(), ids=BY_TIME)
def test_later_bags_are_left_out(store, holdout, late):
    """By dates and numbers."""
    np.testing.assert_array_equal(members(store, holdout), late)


def test_a_fit_is_of_the_earlier_bags(store):
    holdout, late = BY_TIME["a class"]
    model = small(0.01).fit(store, target="y", holdout=holdout)
    assert model.report_["n_bags_held_out"] == late.sum()
    assert model.report_["n_bags_fitted"] == (~late).sum()


@pytest.mark.long
def test_groups_stay_together(store, tmp_path):
    """About a fifth of the bags, whole patients; the same ones when the store has grown."""
    model = small().fit(store, target="y", holdout=BY_GROUPS)
    out = members(store, model.holdout_)
    assert 0.1 < out.mean() < 0.4
    assert not set(PATIENT[out]) & set(PATIENT[~out])
    assert model.report_["n_bags_held_out"] == out.sum()
    url = tmp_path / "grown.zarr"
    half = append(
        BagStore.create(url, 2, target_names=NAMES, class_names={"month": MONTH_NAMES}), 160
    )
    saved = small().fit(half, target="y", holdout=BY_GROUPS)
    before = members(half, saved.holdout_)
    grown = half.append(BAGS[160:], dict.fromkeys(NAMES, np.zeros(N - 160)))
    np.testing.assert_array_equal(members(grown, saved.holdout_)[:160], before)


@pytest.mark.long
def test_what_is_judged(store, tmp_path):
    """evaluate, judge_fit, a smoother and a tuned model judge the bags that the fit left out."""
    model = small().fit(store, target="y", holdout=BY_GROUPS)
    out = members(store, BY_GROUPS)
    model.save(tmp_path / "m.zarr")
    again = load_model(tmp_path / "m.zarr")
    assert again.holdout_ == model.holdout_
    for fitted in (model, again):
        errors = evaluate(fitted, store)
        assert (errors.subset, errors.n) == ("holdout", out.sum())
    assert judge_fit(again, store)["n"] == out.sum()
    smoother = KernelSmoother(ProjectionEmbedding(n_per_dim=3), in_memory=True)
    smoother.fit(store, target="y", holdout=model.holdout_)
    assert smoother.model_.training.n_bags == N - out.sum()
    search = Search([ProjectionEmbedding(n_per_dim=3)], scale_multipliers=(0.5, 1.0), first_bags=N)
    tuned = tune(small(), store, search=search, target="y", holdout=BY_GROUPS).model
    assert tuned.holdout_ == model.holdout_
    np.testing.assert_array_equal(tuned.coef_.shape, model.coef_.shape)


@pytest.mark.long
@pytest.mark.parametrize("alphas", [None, [0.01, 1.0]])
@pytest.mark.parametrize("solver", ["cholesky", "cg"])
def test_validation_takes_whole_groups(store, solver, alphas):
    """None of a group that is held out, and all of a group or nothing."""
    model = small("validation", alphas=alphas, solver=solver, validation_fraction=0.3)
    plan = planned(model, posed(model, store, None, "y", holdout=BY_GROUPS))
    validation = plan.validation
    apart, out = validation.members(0, N), plan.bags.left_out.members(0, N)
    assert not set(PATIENT[apart & ~out]) & set(PATIENT[~apart & ~out])
    share = (apart & ~out).sum() / (~out).sum()
    assert 0.15 < share < 0.6
    index = np.array([17, 18, 3, 200, 200, 5])
    np.testing.assert_array_equal(validation.of(index), apart[index])
    fitted = model.fit(store, target="y", holdout=BY_GROUPS)
    assert fitted.report_["n_bags_fitted"] == (~out).sum()
    only = model.fit(store, target="y", holdout={"groups": "patient"})
    assert (only.holdout_, only.report_["n_bags_fitted"]) == (0.0, N)


REFUSED = [
    ({}, ParameterError, "expected a fraction"),
    ({"share": 0.2}, ParameterError, "expected a fraction"),
    ({"fraction": 1.2, "groups": "patient"}, ParameterError, "fraction of holdout is 1.2"),
    ({"fraction": 0.2, "groups": 3}, ParameterError, "groups of holdout is 3"),
    ({"fraction": 0.2, "after": 3}, ParameterError, "choose one of them"),
    ({"after": "soon", "time": "day"}, ParameterError, "after of holdout is 'soon'"),
    ({"after": LATE}, ParameterError, r"name its column, of \['patient'"),
    ({"fraction": 0.2, "time": "day"}, ParameterError, "time of holdout"),
    ({"fraction": 0.2, "groups": "nothing"}, DataError, "no target 'nothing'"),
    ({"fraction": 0.2, "groups": "two"}, DataError, "groups of 'two' are too large.*95%"),
    ({"fraction": 0.2, "groups": "sparse"}, DataError, "sparse: bag 7 has none"),
    ({"after": "2031-01-01", "time": "day"}, DataError, "no bag is after 2031-01-01 by 'day'"),
    ({"after": 0, "time": "day"}, DataError, "all bags are after 0"),
]


@pytest.mark.parametrize(("holdout", "kind", "message"), REFUSED)
def test_refused(store, holdout, kind, message):
    """By name, before any pass."""
    with pytest.raises(kind, match=message):
        small().fit(store, target="y", holdout=holdout)


def test_memory_has_no_columns():
    """Groups of bags in memory are refused."""
    with pytest.raises(ParameterError, match="groups of holdout is a column of a BagStore"):
        small().fit(BAGS, Y, holdout=BY_GROUPS)


CLASSES_AFTER = {
    "years": (["8", "9", "10"], 8, [False, True, True]),
    "days of another form": (["20251231", "20260201"], "2026-01-10", [False, True]),
    "months": (["2025-12", "2026-01", "2026-02"], "2026-01-10", [False, False, True]),
    "batches": (["b07", "b08"], "b07", [False, True]),
}
NOT_IN_TIME = {
    "days first": (["01.02.2026", "31.01.2026"], "2026-01-10", "'01.02.2026' is not a date"),
    "numbers as texts": (["10", "8", "9"], 8, "not in the order of time"),
    "names": (["a", "b"], 8, "the class 'a' is not a number"),
    "offsets": (["2026-01-01T00:00Z", "2026-02-01T00:00Z"], "2026-01-10", "is not a date without"),
}


def with_classes(url, names):
    made = BagStore.create(url, 2, target_names=["y", "when"], class_names={"when": names})
    return made.append(BAGS[: len(names)], {"y": Y[: len(names)], "when": names})


@pytest.mark.parametrize("case", CLASSES_AFTER)
def test_classes_are_compared_as_what_they_name(tmp_path, case):
    names, after, late = CLASSES_AFTER[case]
    store = with_classes(tmp_path / "s.zarr", names)
    assert members(store, {"after": after, "time": "when"}).tolist() == late


@pytest.mark.parametrize("case", NOT_IN_TIME)
def test_classes_that_name_no_time_are_refused(tmp_path, case):
    """The alphabet would put the last of January after the first of February."""
    names, after, message = NOT_IN_TIME[case]
    store = with_classes(tmp_path / "s.zarr", names)
    with pytest.raises(DataError, match=message):
        members(store, {"after": after, "time": "when"})


def test_a_copy_of_the_store_is_judged_as_the_store(store, tmp_path, monkeypatch):
    """Wherever it lies, also after bags were added to it."""
    model = small(0.01).fit(store, target="y", holdout=0.25)
    model.save(tmp_path / "m.zarr")
    copy = BagStore.open(shutil.copytree(store.url, tmp_path / "elsewhere" / "copy.zarr"))
    merged = merge_stores([store], tmp_path / "merged.zarr")
    for known in (model, load_model(tmp_path / "m.zarr")):
        for other in (copy, merged):
            errors = evaluate(known, other)
            assert (errors.subset, errors.n) == ("holdout", evaluate(known, store).n)
    whole = small(0.01).fit(store, target="y")
    with pytest.warns(BagbasisWarning, match="fitted to bags that it is judged on"):
        evaluate(whole, copy)
    more = {name: [0.0] for name in NAMES} | {"month": MONTHS[:1]}
    grown = copy.append(BAGS[:1], more, ids=[N + 7])
    assert evaluate(model, grown).subset == "holdout"
    with pytest.warns(BagbasisWarning, match="fitted to bags that it is judged on"):
        evaluate(whole, grown)
    monkeypatch.setattr("bagbasis.models.fitted_model.MAX_POINTS_COMPARED", 1)
    assert evaluate(model, grown).subset == "all"


@pytest.mark.parametrize("dtype", ["float32", "uint16"])
def test_a_store_with_the_coordinates_in_another_order_is_a_copy(tmp_path, dtype):
    """Whether or not bags were added to it; other points are not a copy."""

    points = np.concatenate([bag.clip(-4, 4) for bag in BAGS[:61]])
    bag = np.repeat(np.arange(61), [len(bag) for bag in BAGS[:61]])
    frame = pd.DataFrame({"id": bag, "a": points[:, 0], "b": points[:, 1], "y": Y[bag]})

    def made(name, names, change=0.0, n=60):
        box = [{"a": (-4.0, 4.0), "b": (-5.0, 5.0)}[column] for column in names]
        rows = frame.assign(a=frame.a + change * (bag == 59))[bag < n]
        options = {"coordinates": [*names], "targets": ["y"], "box": box, "dtype": dtype}
        return ingest_frame(rows, tmp_path / name, id_column="id", **options)

    model = small(0.01).fit(made("s", "ab"), holdout=0.25)
    assert evaluate(model, made("copy", "ba")).subset == "holdout"
    assert evaluate(model, made("grown", "ba", n=61)).subset == "holdout"
    assert evaluate(model, made("other", "ba", change=0.1)).subset == "all"


def test_a_store_of_other_points_in_bags_of_the_same_sizes_is_no_copy(store, tmp_path):
    model = small(0.01).fit(store, target="y", holdout=0.25)
    columns = dict(zip(NAMES, store.targets().T, strict=True))
    bags = [*store.read()]
    like = {"target_names": NAMES, "class_names": store.meta.class_names, "box": store.box}
    for change in (0, 1e-3):
        bags[N // 2] = bags[N // 2] + change
        other = BagStore.create(tmp_path / f"{change}.zarr", store.n_dims, **like)
        other.append([*bags, bags[0]], {name: [*y, y[0]] for name, y in columns.items()})
        assert evaluate(model, other).subset == ("all" if change else "holdout")


def test_a_subset_of_other_bags_is_warned_of(store, tmp_path, warned):
    """The hash of a position says nothing of bags that were not fitted; a group stays a group."""
    other = BagStore.create(
        tmp_path / "o.zarr", 2, target_names=NAMES, class_names={"month": MONTH_NAMES}
    )
    columns = {name: np.ones(60) for name in NAMES} | {
        "month": MONTHS[:60],
        "patient": PATIENT[:60],
    }
    other.append(BAGS[60:120], columns | {"y": Y[60:120]})
    model = small(0.01).fit(store, target="y", holdout=0.25)
    for subset in ("holdout", "train"):
        evaluate(model, store, subset=subset)
        assert "by their positions" not in warned.text
        evaluate(model, other, subset=subset)
        assert f"subset={subset!r} takes bags by their positions alone" in warned.text
        warned.clear()
    grouped = small(0.01).fit(store, target="y", holdout=BY_GROUPS)
    evaluate(grouped, other, subset="holdout")
    evaluate(model, other, subset="all")
    assert "by their positions" not in warned.text


@pytest.mark.parametrize("scale", [1.0, 1024.0])
def test_fractions_of_another_box_are_other_points(tmp_path, scale):
    """Two stores of small integers may have the same bytes, in other units."""

    def made(name, factor):
        store = BagStore.create(
            tmp_path / name, 2, target_names=["y"], dtype="uint16", box=[(0, factor)] * 2
        )
        return store.append([factor * bag for bag in BAGS[:60]], {"y": Y[:60]})

    model = small(0.01).fit(made("first.zarr", 1.0), target="y", holdout=0.25)
    errors = evaluate(model, made("second.zarr", scale))
    assert errors.subset == ("holdout" if scale == 1 else "all")


@pytest.mark.parametrize("after", ["2026-01-10T00:00+12:00", "2026-01-10T00:00Z"])
def test_a_time_zone_is_refused(store, after):
    """Columns have no time zones: an offset would be dropped, and other bags left out."""
    with pytest.raises(ParameterError, match="without its UTC offset"):
        small().fit(store, target="y", holdout={"after": after, "time": "day"})


@pytest.mark.parametrize("model", [small(), KernelSmoother(ProjectionEmbedding(n_per_dim=3))])
def test_a_fraction_that_holds_out_no_bag_is_warned_of(model, warned):
    """Nothing else would tell that the model has no error."""
    model.fit(BAGS[:40], Y[:40], holdout=0.25)
    assert "holds out none" not in warned.text
    model.fit(BAGS[:40], Y[:40], holdout=0.001)
    assert "holdout=0.001 holds out none of 40 bags" in warned.text
