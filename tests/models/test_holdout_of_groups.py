"""`fit(groups=values, holdout=share)`: whole groups are held out, and known again."""

import numpy as np
import pytest

from bagbasis import BagStore, DataError, DoubleBasisRegressor, ParameterError, evaluate, load_model
from bagbasis.data.labelled.holdout import Holdout
from tests.oracles.planned import planned, posed

RNG = np.random.default_rng(3)
GROUPS = RNG.permutation(np.repeat(np.arange(25), 4))
BAGS = [RNG.normal(g % 5, 1, (9, 2)) for g in GROUPS]
Y = GROUPS % 5 + RNG.normal(0, 0.1, len(GROUPS))


def fitted(X=BAGS, groups=GROUPS, holdout=0.2, **labels):
    labels = labels or {"y": Y}
    return DoubleBasisRegressor("moments", False).fit(X, groups=groups, holdout=holdout, **labels)


def held_out(model):
    return np.isin(np.arange(len(BAGS)), Holdout.of(model.holdout_).places())


KINDS = {
    "numbers": GROUPS,
    "texts": np.array([f"patient {g}" for g in GROUPS]),
    "dates": np.datetime64("2026-01-01") + GROUPS,
    "list": GROUPS.tolist(),
}


@pytest.mark.parametrize("kind", KINDS)
def test_whole_groups_are_held_out(kind):
    model = fitted(groups=KINDS[kind])
    out = held_out(model)
    assert 0.1 <= out.mean() <= 0.4
    assert not {*GROUPS[out]} & {*GROUPS[~out]}
    assert model.report_["n_bags_held_out"] == out.sum()
    assert model.report_["n_bags_fitted"] == (~out).sum()


def test_a_model_knows_the_bags_again(tmp_path):
    model = fitted()
    model.save(str(tmp_path / "m.zarr"))
    loaded = load_model(str(tmp_path / "m.zarr"))
    errors = evaluate(loaded, BAGS, Y)
    assert errors.subset == "holdout"
    assert errors.n == held_out(model).sum()
    assert evaluate(loaded, BAGS, Y, subset="train").n == (~held_out(model)).sum()


def test_a_store_with_values_as_well(tmp_path):
    store = BagStore.create(str(tmp_path / "s.zarr"), n_dims=2, target_names=["y"])
    store.append(BAGS, targets={"y": Y})
    model = fitted(store, target="y")
    np.testing.assert_array_equal(held_out(model), held_out(fitted()))
    assert evaluate(model, store).n == held_out(model).sum()


def test_validation_leaves_out_other_groups():
    model = DoubleBasisRegressor("moments", alpha="validation", validation_fraction=0.3)
    apart = planned(model, posed(model, BAGS, Y, groups=GROUPS)).validation.members(0, len(BAGS))
    assert 0.15 < apart.mean() < 0.5
    assert not {*GROUPS[apart]} & {*GROUPS[~apart]}


def test_what_cannot_be_held_out_is_refused():
    with pytest.raises(DataError, match="bags in memory: groups of 'groups' are too large"):
        fitted(groups=np.zeros(len(BAGS)))
    with pytest.raises(ParameterError, match="mask of holdout is '=='"):
        DoubleBasisRegressor().fit(BAGS, Y, holdout={"fraction": 0.2, "mask": "=="})


def test_a_group_may_be_twice_the_fraction():
    """One of four equal groups is held out for a fraction near a quarter, and none for less."""
    quarters = np.arange(len(BAGS)) % 4
    assert held_out(fitted(groups=quarters, holdout=0.13)).mean() == 0.25
    with pytest.raises(DataError, match=r"there are 4, the largest has 25%.* 12% are asked for"):
        fitted(groups=quarters, holdout=0.12)
