"""`DriftDetector`: the same as a test of all rows, levels, power, kinds of data, saving."""

from __future__ import annotations

import json
import re
import runpy
import warnings
from pathlib import Path

import astropy.units
import numpy as np
import pandas as pd
import pytest

from bagbasis import BagbasisError, BagbasisWarning, BagStore, ModelError, MomentsEmbedding
from bagbasis.models.fitting.partials import read_arrays, write_arrays
from bagbasis.operations import DriftDetector
from bagbasis.operations.monitoring import detector, watched
from bagbasis.operations.monitoring.random_buckets import SMALL_ROWS, RandomBuckets
from tests.jobs.running import assert_picture, bags, done, refused, settings
from tests.oracles.fused import fuse_by_matrices
from tests.passes import kernel_threads


@pytest.fixture(autouse=True)
def _one_core(monkeypatch):
    monkeypatch.setenv("BAGBASIS_WORKER_CORES", "1")


@pytest.mark.parametrize("n", [2, 7, 1000, SMALL_ROWS + 1001])
def test_a_deal_is_an_order(n):
    """Every row once, in an order that has nothing to do with the data's, of any number of rows."""
    assignment = RandomBuckets(n, n // 10, 3, n // 4, 5)
    ranks = assignment.ranks(np.arange(n))
    np.testing.assert_array_equal(np.sort(ranks), np.arange(n))
    np.testing.assert_array_equal(assignment.ranks(np.arange(n)[::2]), ranks[::2])
    sizes = np.bincount(assignment.buckets(np.arange(n)), minlength=n // 4 + 1)
    assert (sizes[:-1] == 3).all()
    if n >= 1000:
        assert abs(np.corrcoef(ranks, np.arange(n))[0, 1]) < 4 / n**0.5
        assert abs(np.corrcoef(ranks[1:], ranks[:-1])[0, 1]) < 4 / n**0.5
        assert (RandomBuckets(n, 0, 1, 0, 6).ranks(np.arange(n)) != ranks).mean() > 0.9


@pytest.mark.long
@pytest.mark.parametrize(("n", "m"), [(60, 30), (60, 700), (900, 30), (900, 400), (900, 750)])
def test_the_statistic_is_that_of_all_rows(n, m, monkeypatch):
    """Single rows and buckets, whatever moves: equal to matrices of the same features to 1e-10."""
    monkeypatch.setattr(detector, "KEPT_VALUES", 1200)
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((n, 2)) * [1, 100], rng.standard_normal((m, 2)) * [1, 120]
    model = DriftDetector(n_frequencies=4, n_permutations=99).fit(a)
    selected = model.reference_
    assert selected.n_rows == n
    r = model.test(b)
    if "new_rows_compared" in r.details:
        assert (n, m) == (900, 750) or m > len(selected.rows)
        return
    with kernel_threads():
        rows = np.vstack([a, b]) / selected.unit
        features = (
            selected.scales(rows).reshape(n + m, len(selected.scales.kernels), -1).swapaxes(0, 1)
        )
    grams = [z @ z.T for z in features]
    expected = fuse_by_matrices(grams, selected.scales.norms, np.arange(n + m) < n)
    assert r.statistic == pytest.approx(expected, abs=1e-10)
    assert np.ptp(r.null_distribution) > 0


@pytest.mark.long
@pytest.mark.parametrize(("n", "m"), [(40, 25), (1500, 60), (1500, 1200)])
def test_level_and_power(n, m, monkeypatch):
    """One reference after another: p ≤ α as often as α says, in each way to compare."""
    monkeypatch.setattr(detector, "KEPT_VALUES", 400)
    values = []
    for seed in range(150):
        rng = np.random.default_rng([n, m, seed])
        fitted = DriftDetector(n_frequencies=4, n_permutations=99, seed=seed)
        fitted.fit(np.sort(rng.standard_normal((n, 1)), axis=0))
        new = rng.standard_normal((m, 1))
        values.append(fitted.test(np.sort(new, axis=0)).p_value)
    for alpha in (0.05, 0.1, 0.5):
        share = (np.array(values) <= alpha).mean()
        assert abs(share - alpha) < 0.01 + 4 * (alpha * (1 - alpha) / 150) ** 0.5
    assert fitted.set_params(n_frequencies=None).fit(np.sort(new)).predict(new + 1.5).is_drift


@pytest.mark.long
def test_predictions():
    rng = np.random.default_rng(1)
    fitted = DriftDetector(level=0.1).fit(rng.standard_normal((500, 3)))
    for shift, expected in ((0.0, False), (1.0, True)):
        new = shift + rng.standard_normal((200, 3))
        p, r = fitted.predict(new), fitted.test(new)
        assert p.is_drift is expected
        assert (p.p_value, p.distance) == (r.p_value, r.statistic)
        assert (p.distance > p.threshold) is expected
        assert p.threshold == pytest.approx(np.quantile(r.null_distribution, 0.9))
        assert (r.question, r.n) == ("drift", {"reference": 500, "new": 200})


@pytest.mark.long
def test_frames_are_read_by_their_columns():
    """In any order, in any units; those that cannot be used are named."""
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({
        "age": rng.integers(20, 80, 900), "income": 1e5 * rng.random(900),
        "score": rng.standard_normal(900).astype(np.float32), "member": rng.random(900) < 0.5,
    })  # fmt: skip
    fitted = DriftDetector().fit(frame[:600])
    assert fitted.reference_.watched.columns == ("age", "income", "score", "member")
    new = frame[600:]
    assert not fitted.predict(new[["score", "member", "income", "age"]]).is_drift
    assert fitted.predict(new.assign(score=new["score"] + 0.5)).is_drift  # far less than incomes
    assert fitted.predict(new.to_numpy(float)) == fitted.predict(new.assign(extra="x"))
    for wrong, message in (
        (new.drop(columns="age"), "new has no column 'age'"),
        (new.assign(age=new["age"].where(new["age"] > 25)), "column 'age' is NaN or infinite"),
        (new.assign(age="old"), "column 'age' holds"),
        (new.to_numpy(float)[:, :3], "new has 3 columns, the reference 4"),
        (new[:1], "new has 1 row; a comparison takes two"),
        ([new.to_numpy(float)] * 2, "new is not points"),
    ):
        with pytest.raises(BagbasisError, match=message):
            fitted.test(wrong)


@pytest.mark.long
def test_bags_and_stores(tmp_path, monkeypatch):
    """The bag is the unit; of a store by passes, with a reference of any size."""
    rng = np.random.default_rng(3)

    def draw(n, shift=0.0):
        return [
            (shift + rng.standard_normal(2) / 2 + rng.standard_normal((size, 2))).astype(np.float32)
            for size in rng.integers(6, 12, n)
        ]

    reference, same, other = draw(300), draw(80), draw(80, 0.6)
    store = BagStore.create(tmp_path / "a.zarr", 2).append(reference)
    fitted = DriftDetector(n_frequencies=16).fit(reference)
    assert fitted.reference_.watched.size == 6
    assert not fitted.predict(same).is_drift
    assert fitted.predict(other).is_drift
    assert fitted.test(other).unit == "bag"
    from_store = DriftDetector(n_frequencies=16).fit(store)
    assert from_store.predict(other).p_value == fitted.predict(other).p_value
    new = BagStore.create(tmp_path / "b.zarr", 2).append(other)
    assert from_store.predict((new, 0, 80)).p_value == fitted.predict(other).p_value
    # of very many bags embeddings are not held
    monkeypatch.setattr(watched, "BAGS_IN_MEMORY", 50)
    monkeypatch.setattr(detector, "KEPT_VALUES", 100)
    monkeypatch.setattr(detector, "MAX_UNITS", 100)
    monkeypatch.setattr(detector, "N_BUCKETS", 40)
    embedding = MomentsEmbedding(box=[(-6, 6)] * 2)
    large = DriftDetector(embedding, n_frequencies=16).fit(store)
    assert large.reference_.n_rows == 300
    assert large.predict(new).is_drift
    assert not large.predict(same).is_drift
    for fit in (fitted, large):
        fit.save(tmp_path / "bags.npz", overwrite=True)
        assert DriftDetector.load(tmp_path / "bags.npz").predict(other) == fit.predict(other)
    for wrong, message in (
        (rng.random((9, 2)), "new is not bags"),
        ([rng.random((9, 3))] * 5, "dimension 3"),
        ([rng.random((3, 2))] * 5, "0 of 5 bags have 6 points"),
    ):
        with pytest.raises(BagbasisError, match=message):
            fitted.test(wrong)
    assert "bags_left_out_of_new" not in fitted.test(other).details
    with_small = [other[0], rng.random((3, 2)), *other[1:], rng.random((5, 2))]
    for fit in (fitted, large):
        assert fit.test(with_small).details["bags_left_out_of_new"] == 2


@pytest.mark.parametrize("place", ["params", "watched", "scales", "format_version"])
def test_saved_by_a_newer_version(tmp_path, place):
    """The version and the name that this version does not know; such a file is not damaged."""
    path = tmp_path / "detector.npz"
    DriftDetector().fit(np.random.default_rng(0).standard_normal((200, 2))).save(path)
    arrays = read_arrays(path)
    meta = json.loads(arrays.pop("meta").tobytes())
    meta["version"] = "9.1"
    if place == "format_version":
        meta[place] = 99
    else:
        meta[place]["zz_new"] = 1
    arrays["meta"] = np.frombuffer(json.dumps(meta).encode(), dtype=np.uint8)
    write_arrays(path, arrays, {})
    message = "version 9.1 of bagbasis wrote it.*update bagbasis$"
    with pytest.raises(ModelError, match=message) as caught:
        DriftDetector.load(path)
    assert "damaged" not in str(caught.value)
    assert ("zz_new" in str(caught.value)) is (place != "format_version")


@pytest.mark.long
def test_saved_whole_or_not_at_all(tmp_path):
    """The same answers in another process's detector; nothing else is replaced, damage is told."""
    rng = np.random.default_rng(4)
    path, other = tmp_path / "detector.npz", tmp_path / "other.npz"
    fitted = DriftDetector(level=0.01, seed=7).fit(rng.standard_normal((20_000, 32)))
    fitted.save(path)
    assert path.stat().st_size < 2**23
    loaded = DriftDetector.load(path)
    assert loaded.get_params() == fitted.get_params()
    for n in (50, 6000, 15_000):
        new = rng.standard_normal((n, 32))
        assert loaded.predict(new) == fitted.predict(new)
    with pytest.raises(BagbasisError, match="say overwrite=True"):
        fitted.save(path)
    np.savez(other, a=np.zeros(3))
    for action in (lambda: fitted.save(other, overwrite=True), lambda: DriftDetector.load(other)):
        with pytest.raises(BagbasisError, match="not a drift detector"):
            action()
    damaged = bytearray(path.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    other.write_bytes(damaged)
    with pytest.raises(BagbasisError, match="not a drift detector, or a damaged one"):
        DriftDetector.load(other)
    with pytest.raises(BagbasisError, match="no drift detector there"):
        DriftDetector.load(tmp_path / "none.npz")
    with pytest.raises(BagbasisError, match="not fitted"):
        DriftDetector().test(np.zeros((3, 2)))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (np.zeros((3, 2)), "3 rows or bags"),
        (np.zeros((9, 2)), "all rows are alike"),
        (np.array([[1.0, np.nan]] * 9), "row 0, column 1 is NaN"),
        (np.array([["a"]] * 9), "reference"),
    ],
)
def test_references_that_are_refused(data, message):
    with pytest.raises(BagbasisError, match=message):
        DriftDetector().fit(data)


def test_row_numbers_are_no_measurement(tmp_path, warned):
    """Later rows always differ from an id: a warning names it. A column without a name is refused,
    where it is not asked for."""
    rows = pd.DataFrame(np.random.default_rng(6).standard_normal((40, 2)), columns=["a", "b"])
    DriftDetector(n_permutations=19).fit(rows.assign(age=[30, 31] * 20))
    assert warned.text == ""
    DriftDetector(n_permutations=19).fit(rows.assign(id=range(7, 47)))
    assert "column 'id' numbers the rows" in warned.text
    rows.to_csv(tmp_path / "r.csv")
    words = settings(detector_url=tmp_path / "d.npz", data_url=tmp_path / "r.csv")
    line = refused(1, "drift", "fit", *words)
    assert "r.csv: column 0 has no name, like the row numbers that pandas writes" in line
    done("drift", "fit", *words, *settings(columns="[a, b]"))
    done("drift", "test", *words)  # the reference has no such column
    rows[:0].to_csv(tmp_path / "empty.csv")
    message = refused(1, "drift", "test", *words, *settings(data_url=tmp_path / "empty.csv"))
    assert "new has 0 rows" in message


@pytest.mark.long
def test_command(tmp_path):
    """`bags drift fit`, then `test`: the exit code says whether there is a drift."""
    rng = np.random.default_rng(5)
    files = {}
    for name, shift in (("reference", 0), ("same", 0), ("other", 1)):
        files[name] = tmp_path / f"{name}.parquet"
        frame = pd.DataFrame(shift + rng.standard_normal((400, 2)), columns=["x", "y"])
        frame.assign(label="a").to_parquet(files[name])
    arguments = {"detector_url": tmp_path / "d.npz", "columns": "[x, y]"}
    printed = done("drift", "fit", *settings(data_url=files["reference"], **arguments))
    assert "400" in printed
    report, picture = tmp_path / "report.json", tmp_path / "scales.png"
    more = {"report": report, "picture": picture}
    for name, code in (("same", 0), ("other", 3)):
        result = bags("drift", "test", *settings(data_url=files[name], **arguments, **more))
        assert result.exit_code == code, result.output
        assert json.loads(report.read_text())["is_drift"] is (code == 3)
    assert_picture(picture)
    assert "overwrite" in refused(1, "drift", "fit",
                                  *settings(data_url=files["reference"], **arguments))  # fmt: skip
    message = refused(1, "drift", "test", *settings(data_url=tmp_path / "no.csv", **arguments))
    assert "no file there" in message
    message = refused(1, "drift", "test", *settings(data_url=files["same"],
                                                 detector_url=tmp_path / "e.npz"))  # fmt: skip
    assert "no drift detector there" in message


@pytest.mark.long
def test_the_page_s_program_runs(tmp_path, monkeypatch, capsys):
    """docs/drift.md as it stands: it finds the drift that it shows."""
    page = (Path(__file__).parents[3] / "docs" / "drift.md").read_text()
    (tmp_path / "page.py").write_text("".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL)))
    monkeypatch.chdir(tmp_path)
    result = runpy.run_path("page.py")
    assert result["p"].is_drift
    assert "largest weight" in capsys.readouterr().out
    assert result["detector"].predict(result["today"]) == result["p"]


def test_masks_and_units_are_refused():
    """NumPy drops both: hidden values would be data, and kilometres would be metres."""
    rows = np.random.default_rng(0).normal(size=(60, 2))
    masked, lengths = np.ma.masked_greater(rows, 1.5), rows * astropy.units.km
    fitted = DriftDetector().fit(rows)
    for values, why in ((masked, "values are masked"), (lengths, "has the unit km")):
        with pytest.raises(BagbasisError, match=f"reference.* {why}"):
            DriftDetector().fit(values)
        with pytest.raises(BagbasisError, match=f"new.* {why}"):
            fitted.test(values)


def test_a_series_is_one_coordinate():
    rows = np.random.default_rng(0).normal(size=120)
    series, array = pd.Series(rows), rows[:, None]
    p_value = DriftDetector().fit(array[:60]).test(array[60:]).p_value
    assert DriftDetector().fit(series[:60]).test(series[60:]).p_value == p_value


def test_a_constant_column_that_changes_is_warned_of():
    """By its name and in any order; its change of 1e-6 is none that the test sees."""
    rng = np.random.default_rng(0)
    old, new = (pd.DataFrame(rng.standard_normal((60, 2)), columns=["a", "b"]) for _ in range(2))
    old["b"], new["b"] = 7.0, 7.0 + 1e-6
    detector = DriftDetector(n_permutations=99).fit(old)
    with pytest.warns(BagbasisWarning, match=r"column 'b' is 7 in all rows .* in 60 of 60 new"):
        assert not detector.predict(new[["b", "a"]]).is_drift
    with pytest.warns(BagbasisWarning, match=r"column 1 is 7 .* in 60 of 60 new"):
        DriftDetector(n_permutations=99).fit(old.to_numpy()).predict(new.to_numpy())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        detector.predict(new.assign(b=7.0))
        DriftDetector(n_permutations=99).fit(new.assign(b=new["a"])).predict(new)
