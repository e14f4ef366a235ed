"""Time series as bags, in the formats of aeon's collections, on a data set that aeon ships."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from sklearn.base import clone
from sklearn.linear_model import RidgeClassifierCV
from sklearn.pipeline import make_pipeline

from bagbasis import DataError, MomentsEmbedding
from bagbasis.embeddings import SeriesEmbedding, bags_of_series
from bagbasis.jobs.experiments.data.real.sets import read_series

RNG = np.random.default_rng(0)
SERIES = [RNG.normal(size=(2, n)) for n in (5, 8, 4)]


def test_moments_are_points():
    """Transposed; with the moment first, and with earlier moments behind."""
    bags = bags_of_series(SERIES)
    for bag, first in zip(bags, SERIES, strict=True):
        np.testing.assert_array_equal(bag, first.T)
    for bag, first in zip(bags_of_series(SERIES, time=True, lags=2), SERIES, strict=True):
        n = first.shape[1]
        rows = [
            [t / (n - 1), *first[:, t], *first[:, t - 1], *first[:, t - 2]] for t in range(2, n)
        ]
        np.testing.assert_allclose(bag, rows, rtol=1e-15)


def test_collections_of_equal_length_and_of_one_channel():
    """Arrays of three and two axes, and lists of one; float32 stays."""
    cube = np.float32(RNG.normal(size=(3, 2, 5)))
    assert bags_of_series(cube).points.dtype == np.float32
    np.testing.assert_array_equal(bags_of_series(cube)[1], cube[1].T)
    flat = RNG.normal(size=(3, 5))
    for case in (flat, list(flat)):
        np.testing.assert_array_equal(bags_of_series(case)[2], flat[2][:, None])


def test_embedding_of_a_collection():
    """It is the embedding of the bags, with names that tell the channel and the lag."""
    made = SeriesEmbedding(MomentsEmbedding(), lags=1).fit(SERIES)
    bags = bags_of_series(SERIES, lags=1)
    np.testing.assert_array_equal(made.transform(SERIES), MomentsEmbedding().fit_transform(bags))
    names = made.get_feature_names_out(["u", "v"])
    assert len(names) == made.transform(SERIES).shape[1]
    assert any("v[-1]" in name for name in names)
    assert clone(made).get_params()["lags"] == 1
    with pytest.raises(DataError, match="the series have 2 channels"):
        made.get_feature_names_out(["u"])


def test_speakers_of_unequal_utterances():
    """Nine speakers, 270 utterances to learn from, 370 to tell: the file that aeon ships."""
    result = read_series("JapaneseVowels", changes=False)
    series = [bag.T for bag in result.bags]
    assert len({serie.shape[1] for serie in series}) > 10
    model = make_pipeline(SeriesEmbedding(), RidgeClassifierCV(np.logspace(-6, 3, 10)))
    model.fit(series[:270], result.labels[:270])
    assert model.score(series[270:], result.labels[270:]) > 0.9


@pytest.mark.parametrize(
    ("series", "options", "error", "message"),
    [
        ([np.ones((2, 2, 2))], {}, DataError, r"series 0 has shape \(2, 2, 2\)"),
        ([np.ones(3), np.array([0, np.nan])], {}, DataError, "series 1: channel 0 is nan at mom"),
        ([np.ones(3), np.ones(2)], {"lags": 2}, DataError, "series 1 has 2 moments; 2 lags need"),
        ([np.ones((2, 3)), np.ones((1, 3))], {}, DataError, "dimension"),
        ([["a"]], {}, DataError, "series 0"),
    ],
)
def test_what_is_refused(series, options, error, message):
    """Names the series."""
    with pytest.raises(error, match=message):
        SeriesEmbedding(**options).fit(series)


def test_rows_of_frames_are_time_steps():
    """As sktime has them; the columns of all frames are put in one order."""
    series = [RNG.normal(size=(2, 9)) for _ in range(4)]
    frames = [pd.DataFrame(values.T, columns=["a", "b"]) for values in series]
    turned = [frame[["b", "a"]] if i % 2 else frame for i, frame in enumerate(frames)]
    for options in ({}, {"time": True, "lags": 2}):
        bags, expected = bags_of_series(turned, **options), bags_of_series(series, **options)
        np.testing.assert_array_equal(bags.points, expected.points)
    assert bags.coordinate_names == ["time", "a", "b", "a[-1]", "b[-1]", "a[-2]", "b[-2]"]
    fitted = SeriesEmbedding(MomentsEmbedding(), lags=1).fit(frames)
    later = [frame[["b", "a"]] for frame in frames]
    np.testing.assert_array_equal(fitted.transform(later), fitted.transform(frames))
    with pytest.raises(DataError, match=r"series 1: .*'b' is missing"):
        bags_of_series([frames[0], frames[1].rename(columns={"b": "c"})])


def test_integers_that_float64_would_merge_are_refused():
    with pytest.raises(DataError, match="series 0: float64 merges integers"):
        bags_of_series([2**53 + np.arange(5)])


@pytest.mark.parametrize("make", [pd.date_range, pd.period_range, pd.timedelta_range])
def test_times_that_do_not_ascend(make):
    """Lags and the time were those of the rows, whatever times an index gives them."""
    index = make("2020-01-01" if make is not pd.timedelta_range else "0 days", periods=5)
    series = pd.DataFrame({"a": np.arange(5.0)}, index=index)
    shuffled = series.iloc[[3, 0, 1, 2, 4]]
    for options in ({"lags": 1}, {"time": True}):
        with pytest.raises(
            DataError, match="series 1: its times are not in ascending order: row 1"
        ):
            bags_of_series([series, shuffled], **options)
        assert len(bags_of_series([series, shuffled.sort_index()], **options)) == 2
    assert len(bags_of_series([series, shuffled])) == 2


def test_the_dimension_called_time_is_the_time():
    values = RNG.normal(size=(3, 2, 7))
    array = xr.DataArray(values, dims=("sample", "channel", "time"))
    for order in (array.transpose("time", "sample", "channel").transpose("sample", ...), array):
        made = bags_of_series(order, lags=1)
        np.testing.assert_array_equal(made.points, bags_of_series(values, lags=1).points)
    by_series = bags_of_series([item.transpose() for item in array])
    np.testing.assert_array_equal(by_series.points, bags_of_series(values).points)
