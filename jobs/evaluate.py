"""``bags evaluate``: errors of a model on labelled bags, pictures and a report."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from .cluster import running_on
from .config import ClusterConfig, DirectoryConfig
from .terminal import Terminal

SUBSETS = {"all": "all bags", "holdout": "the bags held out", "train": "the bags fitted"}


class Config(ClusterConfig, DirectoryConfig):
    """See ``configs/evaluate.yaml``."""

    data_url: str = Field(description="the store of labelled bags")
    model_url: str = Field(description="the model")
    subset: Literal["all", "holdout", "train"] = Field(
        default="all", description="all bags, or those that fit kept out, or those it used"
    )
    coordinate_names: list[str] | None = Field(
        default=None,
        description="axis labels of the pictures, with units; null: the store's, or numbers",
    )
    downwards: bool = Field(
        default=False, description="draw the second coordinate downwards, as in images"
    )
    n_pictured: int = Field(default=3, ge=1, le=6, description="bags drawn with their densities")
    n_smoothed: int = Field(
        default=0, ge=0, description="bags that a kernel smoother predicts too; of densities"
    )


def run(config: Config, console: Terminal) -> dict[str, Any]:
    """Evaluate; writes the pictures, returns the report."""
    from bagbasis import BagStore, load_model

    from .evaluation import check_names, draw_errors, draw_pictured, evaluate, titles

    begun = time.perf_counter()
    model = load_model(config.model_url)
    store = BagStore.open(config.data_url)
    if hasattr(model, "response_spec_"):
        return _run_densities(config, model, store, console, begun)
    names = check_names(config.coordinate_names, store)
    with running_on(config.cluster, store.url), console.progress("evaluate") as progress:
        result = evaluate(model, store, config.subset, progress)
    out_dir = Path(config.out_dir)
    bags = result.pictured(config.n_pictured)
    pictures = draw_errors(result, out_dir)
    embedding = model.features_.embedding
    series = embedding.describe().series
    if series is not None:  # other embeddings estimate no density to draw
        pictured = [store.read(bag, bag + 1)[0] for bag in bags[:, 0].astype(int)]
        lines = titles(result, store, bags)
        path = out_dir / "densities.png"
        pictures.append(
            draw_pictured(path, pictured, lines, embedding.box, series, names, config.downwards)
        )
    report = {
        "model_url": config.model_url,
        "data_url": store.url,
        "subset": config.subset,
        "n_bags": result.n_bags,
        "n_unlabelled": result.n_unlabelled,
        "targets": result.errors(),
        "pictures": [str(path) for path in pictures],
        "seconds": time.perf_counter() - begun,
    }
    show(report, console)
    return report


def _run_densities(
    config: Config, model: Any, store: Any, console: Terminal, begun: float
) -> dict[str, Any]:
    from .density_evaluation import draw_slices, evaluate_densities, response_names, table_rows

    names = response_names(config.coordinate_names, store)
    with running_on(config.cluster, store.url), console.progress("evaluate") as progress:
        errors = evaluate_densities(model, store, config.subset, config.n_smoothed, progress)
    path = Path(config.out_dir) / "densities.png"
    draw_slices(path, model, store, config.subset, config.n_pictured, names)
    report = {
        "model_url": config.model_url,
        "data_url": store.url,
        "subset": config.subset,
        "n_bags": errors["n"],
        "n_unlabelled": errors.pop("n_unlabelled"),
        "densities": errors,
        "pictures": [str(path)],
        "seconds": time.perf_counter() - begun,
    }
    title = f"Squared L2 distance to the responses' densities on {SUBSETS[config.subset]}"
    console.table(title, ["", "MSE", "R² against the average"], table_rows(errors))
    if "smoother" in errors:
        console.values("Kernel smoother (LSE) beside the model", errors["smoother"])
    console.line(str(path))
    return report


def show(report: dict[str, Any], console: Terminal) -> None:
    """The errors of a report as tables, and where the pictures are."""
    for target, errors in report["targets"].items():
        if "accuracy" in errors:
            rows = [[name, *values.values()] for name, values in errors["per_class"].items()]
            title = f"{target}: accuracy {errors['accuracy']:.4f} on {SUBSETS[report['subset']]}"
            console.table(title, ["class", "precision", "recall", "F1", "bags"], rows)
    numeric = {t: e for t, e in report["targets"].items() if "rmse" in e}
    if numeric:
        columns = ["target", "bags", "RMSE", "MAE", "bias", "R²", "RMSE, best constant"]
        keys = ("n", "rmse", "mae", "bias", "r2", "constant_rmse")
        rows = [[name, *[errors[key] for key in keys]] for name, errors in numeric.items()]
        console.table(f"Errors on {SUBSETS[report['subset']]}", columns, rows)
    for path in report["pictures"]:
        console.line(path)
