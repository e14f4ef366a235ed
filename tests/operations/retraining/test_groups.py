"""Lines whose holdout is of whole groups: they enter no model, and judge all of them."""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis import BagStore, ConfigError, DataError, ParameterError, load_model
from bagbasis.data.labelled.holdout import Holdout
from bagbasis.operations import Registry, Window, retrain
from tests.operations.retraining.problems import difference, estimator, spec
from tests.oracles.labelled import labelled_bags

GROUPED = {"fraction": 0.2, "groups": "day"}


def grow(store, n):
    """Append n bags, four of each day; old days come back."""
    bags, y = labelled_bags(n, seed=store.n_bags, most=12)
    days = (np.arange(n) // 4 + store.n_bags // 8).astype(float)
    return store.append(bags, targets={"y": y, "day": days})


@pytest.fixture
def store(tmp_path):
    made = BagStore.create(tmp_path / "bags.zarr", 2, target_names=["y", "day"], dtype=np.float64)
    return grow(made, 160)


def champion(folder):
    registry = Registry(f"{folder}/registry")
    return load_model(registry.model_url(registry.current()))


@pytest.mark.long
@pytest.mark.parametrize(("alpha", "window"), [(0.1, Window()), ("gcv", Window(bags=150))])
def test_rounds_are_fits_without_whole_groups(store, tmp_path, alpha, window):
    """Each model is that of a fit to its window; bags of one day are all out or all in."""
    sequence = spec(tmp_path, estimator=estimator(alpha=alpha), holdout=GROUPED, target="y",
                window=window, evaluate_bags=1000)  # fmt: skip
    first = retrain(sequence).report
    below = champion(tmp_path).holdout_["below"]
    grow(store, 80)
    report = retrain(sequence).report
    model = champion(tmp_path)
    assert model.holdout_ == {**GROUPED, "below": below}, "decided in the first round"
    days = store.targets(names=["day"])[:, 0]
    out = Holdout.of(model.holdout_).split(model.outcome_.take_labels(store)).members(0, 240)
    assert not set(days[out]) & set(days[~out])
    (begin, end), (start, stop) = first["window"], report["window"]
    assert first["n_judged"] == out[begin:end].sum()
    assert report["n_judged"] == out[start:stop].sum()
    bags = [store.read(i, i + 1)[0] for i in range(start, stop)]
    part = BagStore.create(tmp_path / "part.zarr", 2, target_names=["y", "day"], dtype=np.float64)
    part.append(bags, targets=dict(zip(["y", "day"], store.targets(start, stop).T, strict=True)))
    scratch = estimator(alpha=alpha).fit(part, target="y", holdout=model.holdout_)
    assert scratch.alpha_ == model.alpha_
    assert difference(model, scratch) < 1e-9


@pytest.mark.long
def test_what_is_refused(store, tmp_path):
    for holdout in ({"groups": "day"}, {"after": 5}, 0.0, {"fraction": 0.2, "day": 1}):
        with pytest.raises(ParameterError, match="holdout"):
            spec(tmp_path, holdout=holdout, target="y")
    with pytest.raises(DataError, match="week"):
        retrain(spec(tmp_path, holdout={"fraction": 0.2, "groups": "week"}, target="y"))
    retrain(spec(tmp_path, holdout=GROUPED, target="y"))
    grow(store, 40)
    with pytest.raises(ConfigError, match=r"'holdout' is 0\.2, .* with .0\.2 by groups of"):
        retrain(spec(tmp_path, holdout=0.2, target="y"))
