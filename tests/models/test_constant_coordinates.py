"""A coordinate that is constant in training and changes afterwards is named in a warning."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bagbasis import (
    Bags,
    BagStore,
    DoubleBasisRegressor,
    MomentsEmbedding,
    load_model,
)
from tests.warned import texts_of

Y = np.random.default_rng(0).uniform(0.5, 2.0, 40)


def bags_of(value: float, dtype: Any = float) -> list[Any]:
    """Return bags whose second coordinate has one value."""
    rng = np.random.default_rng(1)
    return [np.column_stack([rng.normal(0, s, 12), np.full(12, value)]).astype(dtype) for s in Y]


def named(value: float) -> Bags:
    """Return the same with names of coordinates."""
    bags = Bags.from_list(bags_of(value))
    return Bags.trusted(bags.points, bags.offsets, names=["size", "gain"])


def warned(model: DoubleBasisRegressor, X: Any) -> list[str]:
    """Return the warnings of a prediction."""
    return texts_of(lambda: np.asarray(model.predict(X)))[1]


@pytest.mark.parametrize("value", [5.2, 6.0, -1e4])
def test_another_value_is_named(value: float, tmp_path: Any) -> None:
    """Inside the box around the constant, and outside; also by the saved model."""
    model = DoubleBasisRegressor(MomentsEmbedding(), False, alpha=0.1)
    model.fit(named(5.0), Y)
    model.save(str(tmp_path / "model.zarr"))
    new = named(value)
    for item in (model, load_model(str(tmp_path / "model.zarr"))):
        messages = [text for text in warned(item, new) if "'gain' was 5 in all" in text]
        assert len(messages) == 1
        assert f"is {value:g} in new ones" in messages[0]
    assert not warned(model, named(5.0))


def test_a_store_says_it_too_and_rounding_is_no_change(tmp_path: Any) -> None:
    """A constant that float32 rounds has not changed; another one has, once a computation."""
    stores = {
        value: BagStore.create(str(tmp_path / f"{value}.zarr"), n_dims=2, target_names=["y"])
        for value in (0.1, 0.3)
    }
    for value, store in stores.items():
        store.append(bags_of(value, np.float32), Y)
    model = DoubleBasisRegressor(MomentsEmbedding(), False, alpha=0.1)
    model.fit(stores[0.1], target="y")
    assert not warned(model, bags_of(0.1))
    message = warned(model, stores[0.3])
    assert sum("coordinate 1 was 0.1 in all training points" in text for text in message) == 1
    assert "constant_coordinates" not in model.fit([b[:, :1] for b in bags_of(0.1)], Y).report_


def test_all_points_in_memory_decide_what_is_constant() -> None:
    """Also the last of them, of a coordinate that begins like a constant one."""
    points = np.random.default_rng(3).normal(size=(40 * 50, 3))
    points[:, 1:] = 5.0
    points[-1, 1] = 5.5
    model = DoubleBasisRegressor(MomentsEmbedding(), False, alpha=0.1)
    model.fit(Bags(points, np.arange(41) * 50), Y)
    assert model.report_["constant_coordinates"] == [(2, 5.0)]


def test_a_coordinate_that_fills_a_box_of_width_one_is_not_constant(tmp_path: Any) -> None:
    """Points from 0 to 1 have the box of a constant .5."""
    rng = np.random.default_rng(2)
    bags = [np.vstack([[[0.0, 0.0], [1.0, 1.0]], rng.random((10, 2))]) for _ in Y]
    store = BagStore.create(str(tmp_path / "s.zarr"), n_dims=2, target_names=["y"])
    store = store.append(bags, Y)
    model = DoubleBasisRegressor(MomentsEmbedding(), False, alpha=0.1).fit(store, target="y")
    assert not warned(model, store)
