"""What ``bags evaluate`` draws and prints of a model's errors, for each kind of outcome."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bagbasis import Bags, BagStore, KernelSmoother, Progress, TripleBasisRegressor, evaluate
from bagbasis.core.digits import rounded
from bagbasis.core.errors import ConfigError
from bagbasis.data.labelled.inputs import with_responses
from bagbasis.data.labelled.labelled import LabelledBags
from bagbasis.densities import Densities
from bagbasis.models.base import DoubleBasis
from bagbasis.models.errors import Errors, standard_error_of
from bagbasis.models.judging import evaluate_together
from bagbasis.models.outcomes.details import ClassDetails

from ..pictures.densities import draw_bags, draw_densities
from ..pictures.errors_page import MEASURES, SUBSETS, class_rows, measures
from ..pictures.evaluation import draw_confusion, draw_judged_predictions, draw_residuals
from ..terminal import Terminal

if TYPE_CHECKING:
    from ..pictures.model_part import JobModel


class TargetView:
    """Pictures and tables of the errors of a model of numbers or classes.

    Parameters
    ----------
    model : fitted estimator
    store : BagStore
        That it is evaluated on.
    coordinate_names : list of str, optional
        Axis labels; default the store's, or numbers.
    downwards : bool
        Draw the second coordinate downwards, as in images.

    Raises
    ------
    ConfigError
        Another number of names than coordinates.
    """

    def __init__(
        self,
        model: JobModel,
        store: BagStore,
        coordinate_names: Sequence[str] | None = None,
        downwards: bool = False,
    ) -> None:
        self.model, self.store, self.downwards = model, store, downwards
        names = store.coordinate_names if coordinate_names is None else coordinate_names
        self.coordinate_names = _checked_names(names, store.n_dims, f"{store.url} has")

    def draw(self, errors: Errors, out_dir: Path, n_pictured: int) -> list[Path]:
        """Draw the errors, and a few bags with their densities; return the files."""
        pictures = self._draw_errors(errors, out_dir)
        if not isinstance(self.model, DoubleBasis):  # a network estimates no density
            return pictures
        embedding = self.model.features_.embedding
        shape = embedding.describe().series
        if shape is not None:  # other embeddings estimate no density to draw
            rows = self._choose(errors, n_pictured)
            path = draw_bags(
                out_dir / "densities.png",
                [self.store.read(row, row + 1)[0] for row in errors.sample.index[rows].tolist()],
                self._titles(errors, rows),
                embedding.box,
                shape,
                self.coordinate_names,
                self.downwards,
            )
            pictures.append(path)
        return pictures

    def report(self, errors: Errors, n_smoothed: int, progress: Progress | None) -> dict[str, Any]:
        """Return what the report says of the errors; only densities are compared."""
        return {"targets": errors.values()}

    def show(self, report: dict[str, Any], errors: Errors, console: Terminal) -> None:
        """Print the tables of the report on some errors."""
        subset = SUBSETS[report["subset"]]
        for target, of_target in report["targets"].items():
            if "accuracy" in of_target:
                names = [key for key in MEASURES if key != "brier"]
                texts = measures(errors, *names)
                rows = [[MEASURES[key], text] for key, text in zip(names, texts, strict=True)]
                console.table(f"{target}: {subset}", ["", "the model"], rows)
                columns = ["class", "precision", "recall", "F1", "bags"]
                console.table("Each class", columns, class_rows(errors))
        numeric = {name: target for name, target in report["targets"].items() if "rmse" in target}
        if numeric:
            columns = ["target", "bags", "RMSE", "MAE", "bias", "R²", "RMSE, best constant"]
            spreads = errors.spreads
            keys = ("rmse", "mae", "bias", "r2", "constant_rmse")
            rows = [
                [
                    name,
                    measures_of["n"],
                    *[
                        rounded(measures_of[key], standard_error_of(key, spreads.get(name, {})))
                        for key in keys
                    ],
                ]
                for name, measures_of in numeric.items()
            ]
            console.table(f"Errors on {subset}", columns, rows)

    def _draw_errors(self, errors: Errors, out_dir: Path) -> list[Path]:
        details, by_target = errors.details, errors.values()
        names = list(by_target)
        if isinstance(details, ClassDetails):
            accuracy = by_target[names[0]]["accuracy"]
            path, labels = out_dir / "confusion.png", details.class_names
            return [draw_confusion(path, details.matrix, labels, names[0], accuracy)]
        columns = zip(errors.sample.true.T, errors.sample.predicted.T, strict=True)
        what = [np.column_stack(pair) for pair in columns], names, list(by_target.values())
        return [
            draw_judged_predictions(out_dir / "predictions.png", *what),
            draw_residuals(out_dir / "residuals.png", *what),
        ]

    def _choose(self, errors: Errors, n: int) -> NDArray[np.int64]:
        """Choose up to n rows of the sample: spread true values, or one bag of each class."""
        true = errors.sample.true[:, 0]
        rows = np.argsort(true, kind="stable")
        if isinstance(errors.details, ClassDetails):
            first = np.unique(true[rows], return_index=True)[1]
            rows = rows[first] if len(first) >= n else rows
        places = np.linspace(0, len(rows) - 1, min(n, len(rows))).round().astype(int)
        chosen: NDArray[np.int64] = rows[places]
        return chosen

    def _titles(self, errors: Errors, rows: NDArray[np.int64]) -> list[str]:
        """Return a line per bag: its id, its label and what was predicted."""
        name, sample = next(iter(errors.values())), errors.sample
        lines = []
        for row in rows.tolist():
            bag = int(sample.index[row])
            true, predicted = (
                _say(errors, float(values[row, 0])) for values in (sample.true, sample.predicted)
            )
            identity = self.store.ids(bag, bag + 1)[0]
            lines.append(f"bag {identity}: {name} {true}, predicted {predicted}")
        return lines


class DensityView:
    """Pictures and tables of a model of densities: the rows of 004, Table 3.1, and slices."""

    def __init__(
        self,
        model: TripleBasisRegressor,
        store: BagStore,
        coordinate_names: Sequence[str] | None = None,
        downwards: bool = False,
    ) -> None:
        self.model, self.store = model, store
        n, holder = int(store.response_dims or 0), f"the responses in {store.url} have"
        self.coordinate_names = _checked_names(coordinate_names, n, holder)

    def draw(self, errors: Errors, out_dir: Path, n_pictured: int) -> list[Path]:
        """Draw, for a few bags, the predicted density next to the response's and the bag's own."""
        rows = evenly_spread(errors, n_pictured)
        batch = next(read_pairs(self.store, rows).batches())
        spec = self.model.response_spec_
        kinds = {"response": batch.labels.present}
        if self.store.box == spec.box:
            kinds = {"bag": batch.bags, **kinds}
        columns: dict[str, Densities] = {}
        for kind, points in kinds.items():
            coefficients = np.empty((len(points), spec.n_features))
            spec.embed(points, coefficients)
            columns[kind] = Densities(coefficients, spec.indices, basis=spec.basis, box=spec.box)
        columns["predicted"] = self.model.densities(batch.bags)
        titles = [f"bag {self.store.ids(row, row + 1)[0]}" for row in rows.tolist()]
        path = out_dir / "densities.png"
        return [draw_densities(path, columns, titles, self.coordinate_names)]

    def report(self, errors: Errors, n_smoothed: int, progress: Progress | None) -> dict[str, Any]:
        """Return what the report says of the errors, and of a smoother on ``n_smoothed`` bags."""
        values = errors.values()
        if n_smoothed:
            smoother = self.compare_smoother(errors, n_smoothed, progress)
            values["densities"]["smoother"] = smoother
        return values

    def compare_smoother(self, errors: Errors, n: int, progress: Progress | None) -> dict[str, Any]:
        """Compare the model with a kernel smoother of the same training bags, on up to n bags."""
        model = self.model
        training = BagStore.open(model.report_["data_url"])
        # of an embedding that the fit chose, its default: a smoother has densities alone
        first = None if isinstance(model.embedding, str) else model.embedding
        smoother = KernelSmoother(embedding=first, response_embedding=model.response_embedding).fit(
            training, holdout=model.holdout_, progress=progress
        )
        bags = read_pairs(self.store, evenly_spread(errors, n))
        begun = time.perf_counter()
        smoothed = evaluate_together([smoother.model_], bags)[0]
        done = time.perf_counter()
        predicted = evaluate(model, bags)
        return {
            "n": bags.n_bags,
            "mse": smoothed.error,
            "model_mse": predicted.error,
            "bandwidth": smoother.bandwidth_,
            "seconds_per_bag": (done - begun) / bags.n_bags,
            "model_seconds_per_bag": (time.perf_counter() - done) / bags.n_bags,
        }

    def show(self, report: dict[str, Any], _: Errors, console: Terminal) -> None:
        """Print the tables of the report."""
        errors = report["densities"]
        rows: list[list[Any]] = [["3BE", errors["mse"], errors["r2"]]]
        if errors["input_mse"] is not None:
            rows.append(["the bag's own density", errors["input_mse"], errors["input_r2"]])
        rows.append(["average density", errors["average_mse"], 0.0])
        rows.append(["noise of the responses", errors["noise_mse"], None])
        title = f"Squared L2 distance to the responses' densities on {SUBSETS[report['subset']]}"
        console.table(title, ["", "MSE", "R² against the average"], rows)
        if "smoother" in errors:
            console.values("Kernel smoother (LSE), for comparison", errors["smoother"])


_VIEWS: dict[str, type[TargetView] | type[DensityView]] = {"response": DensityView}


def choose_view(
    model: JobModel, store: BagStore, coordinate_names: Sequence[str] | None, downwards: bool
) -> TargetView | DensityView:
    """Return the view of what the model predicts; parameters as of `TargetView`."""
    kind: Any = _VIEWS.get(model.outcome_.key, TargetView)
    view: TargetView | DensityView = kind(model, store, coordinate_names, downwards)
    return view


def evenly_spread(errors: Errors, n: int) -> NDArray[np.int64]:
    """Choose up to n of the bags evaluated, evenly spread."""
    index = errors.sample.index
    return index[np.linspace(0, len(index) - 1, min(n, len(index))).astype(np.int64)]


def read_pairs(store: BagStore, rows: NDArray[np.int64]) -> LabelledBags:
    """Return some bags that have a response, in memory, with their responses."""
    bags = [store.read(row, row + 1)[0] for row in rows.tolist()]
    responses = [store.responses(row, row + 1).points for row in rows.tolist()]
    return with_responses(Bags.from_list(bags), responses)


def _say(errors: Errors, value: float) -> str:
    details = errors.details
    return details.call(value) if isinstance(details, ClassDetails) else f"{value:.4g}"


def _checked_names(names: Sequence[str] | None, n: int, holder: str) -> list[str]:
    """Return the names given, one per coordinate, or numbers."""
    if names is None:
        return [f"coordinate {j}" for j in range(n)]
    if len(names) != n:
        raise ConfigError(
            f"key 'coordinate_names' has {len(names)} names; {holder} {n} coordinates"
        )
    return list(names)
