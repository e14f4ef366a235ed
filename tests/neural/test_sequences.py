"""Sequence estimators: units by their equations, training that resumes, files, what is learnt."""

from __future__ import annotations

import json

import jax
import numpy as np
import pytest

from bagbasis import BagbasisError, Bags, BagStore
from bagbasis.neural import (
    NextPointRegressor,
    SequenceClassifier,
    SequenceRegressor,
    load_network,
)
from bagbasis.neural.files import HEADER
from bagbasis.neural.units import GRU, LSTM, SRU
from tests.oracles import networks

SMALL = {"n_units": 6, "n_stats": 5, "n_recurrent": 3, "batch_size": 8}
RNG = np.random.default_rng(0)


def sequences(n=24, d=2, seed=0):
    """Random sequences of 3 to 9 points, and a number that depends on their order."""
    rng = np.random.default_rng(seed)
    arrays = [rng.standard_normal((int(m), d)) for m in rng.integers(3, 10, n)]
    return arrays, np.array([a[-1, 0] - a[0, 0] for a in arrays])


UNITS = {
    "sru": (lambda key: SRU(2, 4, 3, 2, (0.0, 0.5, 0.9), "relu", key), networks.sru),
    "sru, tanh": (lambda key: SRU(2, 4, 3, 2, (0.3,), "tanh", key), networks.sru),
    "sru, iid": (lambda key: SRU(2, 4, 3, 0, (0.5, 0.99), "relu", key), networks.sru),
    "gru": (lambda key: GRU(2, 4, key), networks.gru),
    "lstm": (lambda key: LSTM(2, 4, key), networks.lstm),
}


@pytest.mark.long
@pytest.mark.parametrize("name", UNITS)
def test_units_by_their_equations(name):
    """Outputs after each point, and after the last one that is there."""
    make, oracle = UNITS[name]
    unit = make(jax.random.key(3))
    points = RNG.standard_normal((7, 2)).astype(np.float32)
    mask = np.array([1, 1, 1, 1, 1, 0, 0], np.float32)
    outputs, last = unit.run(points, mask)
    exact = oracle(unit, points[:5])
    np.testing.assert_allclose(outputs[:5], exact, rtol=2e-5, atol=1e-6)
    np.testing.assert_allclose(last, exact[-1], rtol=2e-5, atol=1e-6)


@pytest.mark.long
def test_resumed_training_has_the_same_bits(tmp_path, monkeypatch):
    """Interrupted after 20 of 40 steps, in a new estimator; another seed is refused."""
    arrays, y = sequences()
    arguments = {**SMALL, "validate_every": 10, "dropout": 0.2}
    whole = SequenceRegressor(**arguments, n_steps=40).fit(arrays, y)
    place = str(tmp_path / "state")
    SequenceRegressor(**arguments, n_steps=20, checkpoints=place).fit(arrays, y)
    again = SequenceRegressor(**arguments, n_steps=40, checkpoints=place).fit(arrays, y)
    for first, other in zip(*(jax.tree.leaves(m.network_) for m in (whole, again)), strict=True):
        if hasattr(first, "dtype"):
            np.testing.assert_array_equal(first, other)
    assert again.history_ == whole.history_
    with pytest.raises(BagbasisError, match="another training"):
        SequenceRegressor(**arguments, n_steps=40, checkpoints=place, seed=1).fit(arrays, y)


@pytest.mark.long
def test_order_is_learnt():
    """The last point less the first, which no mean over points tells."""
    arrays, y = sequences(400, seed=1)
    model = SequenceRegressor(
        n_units=16, n_stats=16, n_recurrent=8, n_steps=400, learning_rate=0.01
    ).fit(arrays[:300], y[:300])
    assert model.score(arrays[300:], y[300:]) > 0.8


@pytest.mark.long
def test_classes_and_files(tmp_path):
    """Which comes first, high or low; the same from a file, without pickle."""
    rng = np.random.default_rng(2)
    arrays = [np.sort(rng.standard_normal((8, 1)), axis=0) for _ in range(200)]
    y = np.where(rng.random(200) < 0.5, "up", "down")
    arrays = [a if label == "up" else a[::-1] for a, label in zip(arrays, y, strict=True)]
    model = SequenceClassifier(**SMALL, n_steps=100, learning_rate=0.02).fit(arrays[:150], y[:150])
    assert model.score(arrays[150:], y[150:]) > 0.9
    assert model.classes_.tolist() == ["down", "up"]
    model.save(tmp_path / "model.npz")
    loaded = load_network(tmp_path / "model.npz")
    np.testing.assert_array_equal(loaded.predict_proba(arrays), model.predict_proba(arrays))
    np.testing.assert_allclose(model.predict_proba(arrays).sum(axis=1), 1, rtol=1e-6)
    with np.load(tmp_path / "model.npz", allow_pickle=False) as file:
        assert all(file[name].dtype != object for name in file.files)


@pytest.mark.long
def test_stores_and_memory_agree(tmp_path):
    """A store that is read once gives the bits of bags in memory; unlabelled bags are left out."""
    arrays, y = sequences(30)
    store = BagStore.create(
        tmp_path / "a.zarr", n_dims=2, target_names=["y"], box=[(-9, 9)] * 2, dtype="float64"
    )
    labels = y.copy()
    labels[5] = np.nan
    store.append(Bags.from_list(arrays), targets={"y": labels})
    arguments = {**SMALL, "n_steps": 12, "validate_every": 6}
    stored = SequenceRegressor(**arguments).fit(store, target="y")
    known = [i for i in range(30) if i != 5]
    assert len(stored.history_) == 2
    np.testing.assert_allclose(stored.predict(store), stored.predict(arrays), rtol=1e-5, atol=1e-6)
    assert np.isfinite(
        SequenceRegressor(**arguments).fit([arrays[i] for i in known], y[known]).loss_
    )


def test_stores_are_read_in_runs(tmp_path, monkeypatch):
    """Where points do not fit in memory: every training bag once per epoch, runs of neighbours."""
    arrays, y = sequences(40)
    store = BagStore.create(
        tmp_path / "a.zarr", n_dims=2, target_names=["y"], box=[(-9, 9)] * 2, dtype="float64"
    )
    store.append(Bags.from_list(arrays), targets={"y": y})
    from bagbasis.neural import examples as module

    monkeypatch.setattr(module, "HELD_BYTES", 0)
    examples = read_of(store)
    seen = [np.sort(examples.rows_of(step)) for step in range(len(examples.training) // 16)]
    assert len(np.unique(np.concatenate(seen))) == 16 * len(seen)
    for rows in seen:
        bags, labels = examples.take(rows)
        np.testing.assert_array_equal(labels[:, 0], y[rows])
        for bag, row in zip(bags, rows, strict=True):
            np.testing.assert_array_equal(bag, arrays[row])
    assert not set(examples.held_out) & set(examples.training)
    assert len(examples.held_out) + len(examples.training) == 40


def read_of(store):
    """Examples of 16 a batch."""
    from bagbasis.models.outcomes.reals import Reals
    from bagbasis.neural.examples import labelled_examples

    return labelled_examples(Reals, store, None, "y", 0.0, 16, 0.2, 0)[0].examples


@pytest.mark.long
def test_next_points():
    """Predictions of a damped wave, near the truth; row t is the prediction of t + 1."""
    t = np.arange(30)
    rng = np.random.default_rng(3)
    arrays = [np.cos(0.4 * t + p)[:, None] for p in rng.uniform(0, 6.28, 150)]
    model = NextPointRegressor(
        n_units=16, n_stats=16, n_recurrent=8, n_steps=200, learning_rate=0.01, difference=True
    ).fit(arrays[:120])
    assert model.score(arrays[120:]) > -0.02
    predicted = model.predict(arrays[120:])
    assert predicted[0].shape == (30, 1)
    gaps = np.mean([(p[:-1] - a[1:]) ** 2 for p, a in zip(predicted, arrays[120:], strict=True)])
    assert -model.score(arrays[120:]) == pytest.approx(gaps, rel=1e-5)


@pytest.mark.long
def test_points_as_they_are(tmp_path):
    """Unstandardised, the loss is in the units of the data, and a file keeps that."""
    arrays = [100 + 10 * RNG.standard_normal((6, 1)) for _ in range(20)]
    arguments = {**SMALL, "n_steps": 2, "validate_every": 1, "learning_rate": 1e-6}
    model = NextPointRegressor(**arguments, standardize=False).fit(arrays)
    assert model.loss_ == pytest.approx(100**2, rel=0.5)
    assert NextPointRegressor(**arguments).fit(arrays).loss_ < 10
    model.save(tmp_path / "m.npz")
    loaded = load_network(tmp_path / "m.npz")
    np.testing.assert_array_equal(loaded.predict(arrays).points, model.predict(arrays).points)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: SequenceRegressor().predict([np.ones((3, 1))]), "call fit first"),
        (lambda: SequenceClassifier().fit([np.ones((3, 1))] * 4, ["a"] * 4), "needs two classes"),
        (lambda: NextPointRegressor().fit([np.ones((1, 1))] * 4), "two points"),
        (lambda: load_network("nowhere.npz"), "no such file"),
        (
            lambda: SequenceRegressor(validation=0.5).fit([np.ones((3, 1))], [1.0, 2.0]),
            "y has 2 values for 1 bag;",
        ),
    ],
)
def test_refusals(call, message):
    """Each says what is wrong."""
    with pytest.raises(BagbasisError, match=message):
        call()


def test_another_file_is_no_network(tmp_path):
    """Nothing in it is run."""
    np.savez(tmp_path / "a.npz", x=np.ones(3))
    with pytest.raises(BagbasisError, match="is not a saved network"):
        load_network(tmp_path / "a.npz")


@pytest.mark.long
def test_a_network_of_a_newer_version(tmp_path):
    """What this version does not know is named; such a file is a network, and not damaged."""
    path = tmp_path / "m.npz"
    arrays = [RNG.standard_normal((6, 1)) for _ in range(20)]
    NextPointRegressor(**{**SMALL, "n_steps": 2, "validate_every": 1}).fit(arrays).save(path)
    with np.load(path) as members:
        content = dict(members)
    header = json.loads(content[HEADER].tobytes())
    for changed in ({"parameters": header["parameters"] | {"zz_new": 1}}, {"format": 99}):
        content[HEADER] = np.frombuffer(json.dumps(header | changed).encode(), dtype=np.uint8)
        np.savez(path, **content)
        message = r"newer version of bagbasis wrote it.*update"
        with pytest.raises(BagbasisError, match=message) as caught:
            load_network(path)
        assert "is no saved" not in str(caught.value)
