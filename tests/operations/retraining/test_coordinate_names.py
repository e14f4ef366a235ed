"""Rounds of a retraining and registered models compare names of coordinates with those fitted."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from bagbasis import BagbasisError, BagStore, load_model
from bagbasis.operations import Registry, Window, retrain
from bagbasis.operations.retraining.sums import ModelSequence
from tests.operations.retraining.problems import estimator, model_of, spec
from tests.oracles.labelled import labelled_bags

BAGS, Y = labelled_bags(160, most=12)
FRAMES = [pd.DataFrame(bag, columns=["u", "v"]) for bag in BAGS]
TURNED = [frame[["v", "u"]] for frame in FRAMES]
RENAMED = [frame.rename(columns={"u": "w"}) for frame in FRAMES]
LACKING = r"'u' is missing.* 'w' is extra"


def stored(frames, folder, n=160):
    """A store in the place of an earlier one."""
    store = BagStore.create(
        folder / "bags.zarr", 2, target_names=["y"], dtype=np.float64, overwrite=True
    )
    return store.append(frames[:n], Y[:n])


def rounds(folder, frames, **changes):
    """A round, and another one after the store was made anew with more bags."""
    folder.mkdir()
    stored(FRAMES, folder, 120)
    made = spec(folder, **changes)
    retrain(made)
    stored(frames, folder)
    return made, retrain(made)


@pytest.mark.long
@pytest.mark.parametrize("changes", [{}, {"window": Window(bags=80)}], ids=["all bags", "window"])
def test_rounds_have_the_order_of_the_first(tmp_path, changes):
    """Sums of both orders were added, and the model was promoted."""
    straight, turned = (
        model_of(*(value, given_round.report))
        for value, given_round in (
            rounds(tmp_path / name, frames, **changes)
            for name, frames in (("a", FRAMES), ("b", TURNED))
        )
    )
    assert turned.feature_names_in_.tolist() == ["u", "v"]
    np.testing.assert_allclose(turned.coef_, straight.coef_, rtol=1e-9, atol=1e-12)
    with pytest.raises(BagbasisError, match=LACKING):
        rounds(tmp_path / "c", RENAMED, **changes)


@pytest.mark.long
def test_a_line_of_a_model_has_its_order(tmp_path):
    """Sums of the same bags are the same in either order of the columns."""
    sequence = ModelSequence.of(estimator().fit(stored(FRAMES, tmp_path)))
    straight, turned = (
        sequence.statistics(stored(frames, tmp_path), (0, 40)) for frames in (FRAMES, TURNED)
    )
    np.testing.assert_array_equal(turned.train.gram, straight.train.gram)
    with pytest.raises(BagbasisError, match=LACKING):
        sequence.statistics(stored(RENAMED, tmp_path), (0, 40))


@pytest.mark.long
def test_registered_and_saved_models_have_names(tmp_path):
    registry = Registry(str(tmp_path / "registry"))
    model = estimator().fit(FRAMES, Y)
    name = registry.register(model)
    model.save(tmp_path / "model.zarr")
    for url in (registry.model_url(name), tmp_path / "model.zarr"):
        loaded = load_model(url)
        expected = model.predict(FRAMES[:9])
        np.testing.assert_array_equal(loaded.predict(TURNED[:9]), expected)
        lazy = loaded.predict(stored(TURNED, tmp_path, 9)).compute()
        np.testing.assert_allclose(lazy, expected, rtol=1e-12)
        with pytest.raises(BagbasisError, match=LACKING):
            loaded.predict(RENAMED[:9])
        with pytest.raises(BagbasisError, match=LACKING):
            loaded.predict(stored(RENAMED, tmp_path, 9)).compute()
