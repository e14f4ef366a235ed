"""Embeddings of time series as bags of time steps, in the formats of aeon's collections."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from ...core import Integer, Items, TextList, check_parameters, checked, component
from ...core.arrays import as_array
from ...core.errors import DataError, shown
from ...core.sklearn_bases import BaseEstimator, TransformerMixin, of_bags
from ...data.bags.alignment import has_index
from ...data.bags.bags import Bags
from ...data.bags.coordinates import Names, order_of
from ...data.bags.frames import names_of_table, numbers_of_frame
from ...data.bags.precision import check_array_apart
from ..base import Embedding, InnerEmbedding
from ..mean_map import MeanMapEmbedding

Collection = NDArray[Any] | Sequence[ArrayLike]


@checked
def bags_of_series(
    X: Annotated[Collection, Items], *, time: bool = False, lags: Annotated[int, Integer(0)] = 0
) -> Bags:
    """Turn time series into bags: a time step is a point, a channel is a coordinate.

    The order of the time steps is lost unless ``time`` or ``lags`` preserve it in part.

    Parameters
    ----------
    X : array or list of array
        A collection of time series in aeon's format: an array (n_series, channels, time), or
        (n_series, time) for one channel; or a list of arrays (channels, time_i) or (time_i,). Or a
        list of data frames, as sktime has them: a row is a time step, and a column a channel. All
        frames are put in the column order of the first frame. A dimension "time" of xarray may be
        at any place.
    time : bool
        Whether to add the time as first coordinate, from 0 to 1 in each series.
    lags : int ≥ 0
        Number of earlier time steps whose channels are added to each point. The first ``lags`` time
        steps of a series give no point.

    Returns
    -------
    Bags
        Points with time + channels · (lags + 1) coordinates; float32 if all series are float32,
        else float64.

    Raises
    ------
    DataError
        If a series has a wrong shape, another number of channels or other columns than the first
        one, a value that is not finite, or at most ``lags`` time steps; with ``time`` or ``lags``
        also if the times in an index of pandas do not ascend.

    See Also
    --------
    SeriesEmbedding : Embed collections of time series.
    bagbasis.Bags : Bags in memory.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> from bagbasis.embeddings import bags_of_series
    >>> bags_of_series([rng.normal(size=(2, n)) for n in (30, 50)], time=True)[0].shape
    (30, 3)
    """
    parts: list[NDArray[Any]] = []
    channels: Names = None
    for i, series in enumerate(map(_with_time_last, _with_time_last(X))):
        if time or lags:
            _check_times(series, f"series {i}")
        values, names = _channels_of(series, f"series {i}")
        order = order_of(names, channels, f"series {i}", "an earlier series has")
        parts.append(_points(values if order is None else values[order], f"series {i}", time, lags))
        channels = channels or names
    bags = Bags.from_list(parts)
    return bags if channels is None else bags.named(_names_of_points(channels, time, lags))


def _check_times(series: object, name: str) -> None:
    """Raise DataError for a Series or frame of pandas whose times are not in ascending order."""
    index: Any = getattr(series, "index", None) if has_index(series) else None
    if hasattr(index, "freqstr") and not index.is_monotonic_increasing:  # of dates or periods
        before = np.flatnonzero(index[1:] < index[:-1])
        moment = int(before[0]) + 1 if len(before) else int(np.argmax(index.isna()))
        raise DataError(
            f"{name}: its times are not in ascending order: row {moment} has {index[moment]}; sort "
            "it by sort_index()"
        )


def _with_time_last(array: Any) -> Any:  # noqa: ANN401 - any array, or a list of arrays
    """Return an array of xarray with its dimension "time" as the last one; other values as is."""
    dims: tuple[object, ...] = getattr(array, "dims", ())
    return array.transpose(..., "time") if "time" in dims and dims[-1] != "time" else array


def _channels_of(series: Any, name: str) -> tuple[NDArray[Any], Names]:  # noqa: ANN401 - any array
    """Return a series, shape (channels, time), and the names of its channels if it is a table."""
    if hasattr(series, "columns"):
        return numbers_of_frame(series, name).T, names_of_table(series)
    return as_array(name, series), None


def _names_of_points(channels: Sequence[str], time: bool, lags: int) -> list[str]:
    """Return the names of the coordinates of `bags_of_series`."""
    late = [f"{name}[-{k}]" for k in range(1, lags + 1) for name in channels]
    return ["time"] * time + [*channels] + late


def _points(series: NDArray[Any], name: str, time: bool, lags: int) -> NDArray[Any]:
    """Return the points of a series, shape (n, time + channels · (lags + 1))."""
    series = series[None] if series.ndim == 1 else series
    if series.ndim != 2 or not len(series) or series.dtype.kind not in "biuf":
        what = f"shape {series.shape} and dtype {series.dtype}"
        raise DataError(f"{name} has {what}; expected numbers of shape (channels, time)")
    n = series.shape[1] - lags
    if n < 1:
        raise DataError(f"{name} has {series.shape[1]} moments; {lags} lags need more than {lags}")
    check_array_apart(name, series.T, is_whole=False)
    kind = np.float32 if series.dtype == np.float32 else np.float64
    if not np.isfinite(series).all():
        channel, moment = np.argwhere(~np.isfinite(series))[0].tolist()
        value = series[channel, moment]
        raise DataError(f"{name}: channel {channel} is {value} at moment {moment}, not finite")
    parts = [series[:, lags - k : lags - k + n].T for k in range(lags + 1)]
    if time:
        parts.insert(0, np.linspace(0, 1, series.shape[1])[lags:, None])
    return np.concatenate(parts, axis=1).astype(kind, copy=False)


@component
class SeriesEmbedding(TransformerMixin, BaseEstimator):
    """Embed time series of unequal lengths; a transformer for aeon's collections.

    Use it in a scikit-learn pipeline before any estimator for vectors. aeon is not imported,
    because its releases require another version of numba than this package.

    Parameters
    ----------
    embedding : Embedding
        Embedding of the bags of time steps. Default: `MeanMapEmbedding()`.
    time, lags
        Parameters of `bags_of_series`.

    Attributes
    ----------
    embedding_ : Embedding
        The fitted embedding.
    n_channels_ : int
        Number of channels of a series.

    See Also
    --------
    bags_of_series : Turn time series into bags.
    bagbasis.neural.SequenceRegressor : Predict numbers from sequences.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> from bagbasis import MomentsEmbedding
    >>> from bagbasis.embeddings import SeriesEmbedding
    >>> X = [rng.normal(size=(2, n)) for n in (30, 50, 40)]  # channels, then moments
    >>> SeriesEmbedding(MomentsEmbedding()).fit_transform(X).shape
    (3, 5)
    """

    embedding: InnerEmbedding = field(default=None, kw_only=False)
    time: bool = False
    lags: Annotated[int, Integer(0)] = 0
    embedding_: Embedding[Any] = field(init=False)
    n_channels_: int = field(init=False)

    def __sklearn_tags__(self) -> Tags:
        """Return scikit-learn's tags: X consists of series."""
        return of_bags(super().__sklearn_tags__())

    def fit(self, X: Collection, y: object = None) -> Self:
        """Fit the embedding to a collection in a format of `bags_of_series`.

        Raises
        ------
        DataError
            If `bags_of_series` rejects a series.
        ParameterError
            If a parameter has a value that is not allowed.
        """
        check_parameters(self)
        bags = bags_of_series(X, time=self.time, lags=self.lags)
        self.n_channels_ = (bags.n_dims - self.time) // (self.lags + 1)
        embedding = MeanMapEmbedding() if self.embedding is None else clone(self.embedding)
        self.embedding_ = embedding.fit(bags)
        return self

    def transform(self, X: Collection) -> NDArray[Any]:
        """Return the embeddings, shape (n_series, s).

        Raises
        ------
        DataError
            If `bags_of_series` rejects a series, or the number of channels differs from `fit`.
        """
        check_is_fitted(self)
        return self.embedding_.transform(bags_of_series(X, time=self.time, lags=self.lags))

    @checked
    def get_feature_names_out(self, input_features: TextList | None = None) -> NDArray[Any]:
        """Return a name for each column of `transform`.

        ``input_features`` are the names of the channels; default x0, x1, ….

        Raises
        ------
        DataError
            If the number of names differs from the number of channels.
        """
        check_is_fitted(self)
        n = self.n_channels_
        names = [f"x{j}" for j in range(n)] if input_features is None else list(input_features)
        if len(names) != n:
            raise DataError(f"input_features is {shown(names)}; the series have {n} channels")
        named = _names_of_points(names, self.time, self.lags)
        return self.embedding_.get_feature_names_out(named)

    def __sklearn_is_fitted__(self) -> bool:
        """Whether `fit` was called."""
        return hasattr(self, "embedding_")
