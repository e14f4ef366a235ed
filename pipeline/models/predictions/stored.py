"""Predictions of a whole store: yielded block by block, or written with the bags' ids."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Any

import numpy as np
import zarr
from numpy.typing import NDArray

from ...core import (
    Fraction,
    Instance,
    ListOf,
    OneOf,
    Subset,
    UrlOrPath,
    checked,
)
from ...core.errors import ModelError, ParameterError, StoreError
from ...data.bags.arrow_arrays import arrow_stream
from ...data.labelled.labelled import Batch, LabelledBags
from ...data.storage.files import storage_errors
from ...data.storage.folders import writing_folder
from ...data.storage.urls import filesystem, normalize_url
from ...data.storage.zarr_reading import CHECKED_ZSTD, open_group
from ...data.storage.zarr_stores import attributes_of, check_replaceable, holds_parts, zarr_store
from ...data.store.plan import Range
from ...data.store.schema import FILLS
from ...data.store.store import BagStore
from ...execution.passes import Reduction, iter_pass
from ...execution.progress import Progress
from ..fitted_model import (
    COVERAGE,
    NO_COLUMNS,
    PREDICTED_COLUMNS,
    FittedEstimator,
    FittedModel,
    MoreColumns,
    PredictedRows,
    check_predictable,
    model_of,
    names_fitted,
    take_subset,
)
from ..outcomes.base import Layout, Prediction
from .features import prediction_ranges
from .formats import (
    ID,
    N_PREDICTED,
    PREDICTION_FORMATS,
    PREDICTIONS_FORMAT,
    attrs_of,
    check_csv,
    format_of,
    pandas_for,
    table_of,
    write_csv,
)
from .outside import Outside, counting_outside


@dataclass(frozen=True, kw_only=True)
class PredictedBlock:
    """Predictions for consecutive bags of a store.

    Attributes
    ----------
    rows : int64, shape (n,)
        Positions of the bags in the store, ascending.
    prediction : shape (n,) or (n, k)
        Targets, classes, or coefficients of densities.
    probabilities : float64, shape (n, n_classes), or None
        Class probabilities; None for other outcomes.
    more : mapping
        Additional columns by their names, float64.
    outside : Outside
        Bags with many points outside the box.

    See Also
    --------
    iter_predictions : Predict block by block.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(0.5, 2.0, 80)
    >>> X = [rng.normal(0, s, (30, 2)) for s in y]
    >>> from bagbasis import BagStore, DoubleBasisRegressor
    >>> from bagbasis.models import iter_predictions
    >>> store = BagStore.create('bags.zarr', n_dims=2, target_names=['y']).append(X, y)
    >>> model = DoubleBasisRegressor('moments').fit(store)
    >>> [block.prediction.shape for block in iter_predictions(model, store)]
    [(80,)]
    """

    rows: NDArray[np.int64]
    prediction: NDArray[Any]
    probabilities: NDArray[np.float64] | None
    more: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    outside: Outside = field(default=Outside(), repr=False)

    @property
    def as_prediction(self) -> Prediction:
        """The predictions without the positions."""
        return Prediction(self.prediction, self.probabilities, self.more)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Export the predictions to Arrow: a table with a row per bag, with lists for k columns."""
        columns = {"row": self.rows, "prediction": self.prediction, **self.more}
        if self.probabilities is not None:
            columns["probabilities"] = self.probabilities
        return arrow_stream(columns, requested_schema)


# for a range without predicted bags, or whose predictions are written already
_NO_BAGS = PredictedBlock(
    rows=np.empty(0, dtype=np.int64), prediction=np.empty(0), probabilities=None
)


class CollectedPredictions:
    """A `Collector` of the predictions for a range of bags."""

    def __init__(self, model: FittedModel, columns: MoreColumns = NO_COLUMNS) -> None:
        self._model = model
        self._columns = columns
        self._blocks: list[PredictedBlock] = []

    def add(self, batch: Batch) -> None:
        """Predict the bags of a batch."""
        if len(batch):
            with counting_outside(batch.index) as counted:
                prediction = self._model.predicted(batch.bags, self._columns)
            block = PredictedBlock(
                rows=batch.index,
                prediction=prediction.values,
                probabilities=prediction.probabilities,
                more=prediction.more,
                outside=counted.outside,
            )
            self._blocks.append(block)

    def finish(self) -> PredictedBlock:
        """Return all predictions as one block."""
        return _join(self._blocks) if self._blocks else _NO_BAGS


class _WrittenPredictions(CollectedPredictions):
    """Writes the predictions for a range of bags to their rows of an array, or to a file."""

    def __init__(
        self,
        model: FittedModel,
        columns: MoreColumns,
        store: BagStore,
        place: str,
        format: str,
        n_predicted: int,
    ) -> None:
        super().__init__(model, columns)
        self._store, self._place, self._format = store, place, format
        self._n_predicted = n_predicted

    def finish(self) -> PredictedBlock:
        block = super().finish()
        if not len(block.rows):
            return _NO_BAGS
        start, stop = int(block.rows[0]), int(block.rows[-1]) + 1
        ids = self._store.ids(start, stop)[block.rows - start]
        if self._format == "zarr":
            group = open_group(zarr_store(self._place), "r+")
            for name, values in {"ids": ids, **block.as_prediction.arrays()}.items():
                group[name].oindex[block.rows] = values  # type: ignore[union-attr]
        else:
            columns = table_of(self._model.outcome, ids, block.as_prediction)
            frame = pandas_for(self._place).DataFrame(columns)
            frame.attrs = attrs_of(frame, self._n_predicted)
            fs, path = filesystem(self._place)
            with fs.open(f"{path}/part-{start:012d}.parquet", "wb") as file:
                frame.to_parquet(file, index=False, write_page_checksum=True)
        return replace(_NO_BAGS, outside=block.outside)  # no predictions travel back


def _join(blocks: Sequence[PredictedBlock]) -> PredictedBlock:
    arrays = [block.as_prediction.arrays() for block in blocks]
    joined = {name: np.concatenate([part[name] for part in arrays]) for name in arrays[0]}
    return PredictedBlock(
        rows=np.concatenate([block.rows for block in blocks]),
        prediction=joined.pop("predictions"),
        probabilities=joined.pop("probabilities", None),
        more=joined,
        outside=sum((block.outside for block in blocks), Outside()),
    )


def _merge(ours: PredictedBlock, theirs: PredictedBlock) -> PredictedBlock:
    return _join([ours, theirs])


@checked
def iter_predictions(
    model: FittedEstimator[FittedModel],
    store: Annotated[BagStore, Instance()],
    *,
    subset: Annotated[str, Subset] = "all",
    progress: Progress | None = None,
) -> Iterator[PredictedBlock]:
    """Yield predictions block by block, on the open cluster or in this process.

    Parameters
    ----------
    model : fitted estimator
    store : BagStore
        Store with the bags to predict. The blocks can come in any order; ``rows`` has the positions
        of the bags.
    subset : {"all", "holdout", "train"}
        Bags to predict: all bags, the bags that the fit held out, or the bags of the fit.

    Raises
    ------
    ModelError
        If the bags have another dimension than the bags fitted, or ``subset="holdout"`` is given
        and no bags were held out.

    See Also
    --------
    write_predictions : Write predictions to a file.
    PredictedBlock : A block of predictions.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(0.5, 2.0, 80)
    >>> X = [rng.normal(0, s, (30, 2)) for s in y]
    >>> from bagbasis import BagStore, DoubleBasisRegressor
    >>> from bagbasis.models import iter_predictions
    >>> store = BagStore.create('bags.zarr', n_dims=2, target_names=['y']).append(X, y)
    >>> model = DoubleBasisRegressor('moments').fit(store)
    >>> sum(len(block.rows) for block in iter_predictions(model, store))
    80
    """
    fitted = model_of(model)
    check_predictable(fitted, store, subset)
    bags = take_subset(LabelledBags(store), fitted, subset)
    for block in _predict(partial(CollectedPredictions, fitted), fitted, bags, progress):
        if len(block.rows):
            yield block


@checked
def write_predictions(
    model: FittedEstimator[FittedModel],
    store: Annotated[BagStore, Instance()],
    url: UrlOrPath,
    *,
    format: Annotated[str, OneOf(*PREDICTION_FORMATS)] | None = None,
    columns: Annotated[str | Sequence[str], ListOf(OneOf(*PREDICTED_COLUMNS), or_one=True)] = (),
    coverage: Annotated[float, Fraction] = COVERAGE,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> None:
    """Predict every bag of a store and write the predictions with the bags' ids.

    The format follows from the suffix of the URL:

    - Zarr: arrays ``ids`` (n_bags,), ``predictions`` (n_bags,) or (n_bags, n_targets), and for
      classifiers ``probabilities`` (n_bags, n_classes). Names are in the attributes. Rows of
      removed bags have NaN and the id -1 or "".
    - Parquet: a folder of files with the columns ``id``, one per target (or ``prediction``), and
      ``p_<class>``. Removed bags have no row.
    - CSV: one file with the columns of Parquet, in the order of the bags. This process collects
      all predictions.

    Predicted densities are written as their coefficients, in the columns ``a_<index>``. The
    response basis is in the attributes of Zarr.

    Workers write Zarr and Parquet in parallel. On local disks, the result appears when it is
    complete. On object stores, the arrays of Zarr are in the group named by the attribute
    ``bagbasis_current``. Parquet files appear one by one there, after older files are deleted.

    Parameters
    ----------
    format : {"zarr", "parquet", "csv"}, optional
        Format of the predictions. Default: the suffix of the URL (.zarr, .parquet or .csv), or Zarr
        without a suffix.
    columns : sequence of {"std", "leverage", "mahalanobis", "lower", "upper", "set", "outside"}
        Columns in addition to the predictions: std, leverage and mahalanobis need a model with
        uncertainty; lower and upper, or set for classes, need a model with a holdout or
        interval_folds; outside is the fraction of a bag's points outside the box. With several
        targets, columns are named ``std_<target>``; with classes, ``set_<class>``. See
        `DoubleBasisRegressor.predict`, `bag_scores`, `predict_interval` and `predict_set`.
    coverage : float in (0, 1)
        Coverage of the intervals from lower to upper, and of the sets.
    overwrite : bool
        Whether to replace predictions at the URL; nothing else is ever replaced.

    Raises
    ------
    ModelError
        If the model is not fitted or does not have a column, the bags have another dimension,
        something is stored at the URL, or writing failed; for tables, also if
        ``bagbasis[tables]`` is not installed.
    ParameterError
        If the suffix of the URL is unknown or belongs to another format, or a table would have two
        columns of the same name.

    See Also
    --------
    read_predictions : Read predictions of any format as one table.
    iter_predictions : Predict block by block.
    bagbasis.evaluate : Errors on labelled bags.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(0.5, 2.0, 80)
    >>> X = [rng.normal(0, s, (30, 2)) for s in y]
    >>> from bagbasis import BagStore, DoubleBasisRegressor
    >>> from bagbasis.models import read_predictions, write_predictions
    >>> store = BagStore.create('bags.zarr', n_dims=2, target_names=['y']).append(X, y)
    >>> write_predictions(DoubleBasisRegressor('moments').fit(store), store, 'y.parquet')
    >>> read_predictions('y.parquet').shape
    (80, 2)
    """
    url = normalize_url(url)
    format = format_of(url, format)
    if format != "zarr":
        pandas_for(url)
    fitted = model_of(model)
    check_predictable(fitted, store, "all")
    if format != "zarr":
        _check_names(fitted)
    wanted = MoreColumns(tuple(columns), coverage)
    more = check_columns(fitted, wanted)
    if format == "csv":
        _write_csv(fitted, wanted, store, url, overwrite, progress)
        return
    check_replaceable(url, overwrite, "written predictions", _are_predictions)
    with (
        storage_errors(url, "writing predictions failed", kind=ModelError, passing=StoreError),
        writing_folder(url, overwrite=overwrite, group=format == "zarr") as place,
    ):
        ranges = _ranges(fitted, LabelledBags(store))
        _prepare(fitted, more, store, place, format, ranges[0][1] if ranges else 1)
        n = int(LabelledBags(store).present().sum())
        collector = partial(_WrittenPredictions, fitted, wanted, store, place, format, n)
        for _ in _predict(collector, fitted, LabelledBags(store), progress):
            pass
        if format == "zarr":
            group = open_group(zarr_store(place), "r+")
            group.update_attributes(_attributes(fitted, store) | {N_PREDICTED: n})


def _write_csv(
    model: FittedModel,
    wanted: MoreColumns,
    store: BagStore,
    url: str,
    overwrite: bool,
    progress: Progress | None,
) -> None:
    """Collect the predictions of all bags, and write them."""
    with storage_errors(url, "writing predictions failed", kind=ModelError, passing=StoreError):
        check_csv(url, overwrite)
        collector = partial(CollectedPredictions, model, wanted)
        blocks = []
        for block in _predict(collector, model, LabelledBags(store), progress):
            if len(block.rows):
                start, stop = int(block.rows[0]), int(block.rows[-1]) + 1
                ids = store.ids(start, stop)[block.rows - start]
                blocks.append((start, table_of(model.outcome, ids, block.as_prediction)))
        write_csv(url, blocks)


def _predict(
    collector: Callable[[], CollectedPredictions],
    model: FittedModel,
    bags: LabelledBags,
    progress: Progress | None,
) -> Iterator[PredictedBlock]:
    reduction = Reduction(collector=collector, merge=_merge, cost=model.prediction_cost)
    outside = Outside()
    for block in iter_pass(bags, reduction, ranges=_ranges(model, bags), progress=progress):
        outside += block.outside
        yield block
    assert isinstance(bags.data, BagStore)
    outside.warn(bags.data)


def _ranges(model: FittedModel, bags: LabelledBags) -> list[Range]:
    """Return the ranges of bags of the tasks, which are also the chunks of written arrays."""
    assert isinstance(bags.data, BagStore)
    return prediction_ranges(bags.data, model.prediction_cost, 8 * model.outcome.n_targets)


def _are_predictions(url: str) -> bool:
    return PREDICTIONS_FORMAT.key in attributes_of(url) or holds_parts(url)


def _attributes(model: FittedModel, store: BagStore) -> dict[str, Any]:
    names = list(model.outcome.names)
    described = model.outcome.describe()
    fitted = names_fitted(model.report)
    coordinates = {} if fitted is None else {"coordinates": list(fitted)}
    values = {"target_names": names, "data_url": store.url, **coordinates, **described}
    return PREDICTIONS_FORMAT.stamp(values)


def _check_names(model: FittedModel) -> None:
    """Raise ParameterError if a table of predictions would have two columns of one name."""
    prediction = model.with_columns(PredictedRows.none(model.outcome.n_targets), NO_COLUMNS)
    if ID in model.outcome.columns(prediction):
        raise ParameterError(
            f"target {ID!r}: a table of predictions has the bags' ids in a column of that name; "
            "write Zarr, or rename the target"
        )


def check_columns(model: FittedModel, columns: MoreColumns) -> dict[str, Layout]:
    """Return the layouts of the arrays of the additional columns.

    Raises
    ------
    ParameterError
        If a column has the name of a target.
    ModelError
        If the model does not have a column.
    """
    if not columns.names:
        return {}
    outcome = model.outcome
    prediction = model.with_columns(PredictedRows.none(outcome.n_targets), columns)
    twice = set(outcome.columns(prediction)) & set(outcome.more_columns(prediction))
    if twice:
        raise ParameterError(
            f"columns: {min(twice)!r} is a target of the model, too; leave that column out"
        )
    return {name: Layout(rows.shape[1:], rows.dtype) for name, rows in prediction.more.items()}


def _prepare(
    model: FittedModel,
    more: Mapping[str, Layout],
    store: BagStore,
    url: str,
    format: str,
    step: int,
) -> None:
    """Create the folder, or the arrays in chunks of ``step`` bags, for the workers."""
    if format == "parquet":
        fs, path = filesystem(url)
        fs.makedirs(path, exist_ok=True)
        return
    attributes: dict[str, Any] = {PREDICTIONS_FORMAT.key: {}}  # of bagbasis, but not complete yet
    group = zarr.open_group(zarr_store(url), mode="w", zarr_format=3, attributes=attributes)
    n = store.n_bags
    ids = str if store.meta.id_kind == "str" else "int64"
    fill = FILLS["T" if ids is str else "i"]  # what a removed bag's row holds
    group.create_array(
        "ids", shape=(n,), chunks=(step,), dtype=ids, fill_value=fill, compressors=CHECKED_ZSTD
    )
    for name, column in {**model.outcome.stored(), **more}.items():
        group.create_array(
            name,
            shape=(n, *column.tail),
            chunks=(step, *column.tail),
            dtype=_stored(column.dtype),
            fill_value={**FILLS, "U": ""}.get(column.dtype.kind),
            compressors=CHECKED_ZSTD,
        )


def _stored(dtype: np.dtype[Any]) -> type[str] | np.dtype[Any]:
    """Return the type as Zarr stores it: text of any length."""
    return str if dtype.kind in "UT" else dtype
