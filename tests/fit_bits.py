"""Digests of the bits of fits, predictions, folds, tunes and rounds, to be compared over commits.

``python tests/fit_bits.py FILE`` writes the table of this commit. With a second file it compares
the two and names every case that differs. The table in ``tests/kept/fit-bits.json`` was written by
the commit before a fit became a value; bits are equal on one kind of processor with equal packages
only, so a comparison takes both tables from one machine: check out the other commit, and run this
script there. Scores have 12 digits, for they may be summed in another order.
"""

from __future__ import annotations

import os

if hasattr(os, "sched_setaffinity"):  # one thread: before numpy counts the cores
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}

import hashlib
import json
import logging
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import zarr

from bagbasis import (
    BagStore,
    DoubleBasisClassifier,
    DoubleBasisRegressor,
    HDDEmbedding,
    KernelSmoother,
    LearnedFourierFeatures,
    MeanMapEmbedding,
    MomentsEmbedding,
    NystroemFeatures,
    ProjectionEmbedding,
    RandomFourierFeatures,
    TripleBasisRegressor,
    cross_val_score,
    evaluate,
    load_model,
)
from bagbasis.models import Search, iter_predictions, judge_fit, permutation_importance, tune
from bagbasis.operations import DriftGate, Registry, Retraining, Window, retrain

N, N_NEW = 260, 40
BASIS = {"embedding": ProjectionEmbedding(n_per_dim=4)}
SMALL = {**BASIS, "random_features": RandomFourierFeatures(n_features=48, seed=3)}
WIDE = {**BASIS, "random_features": RandomFourierFeatures(n_features=512, seed=3)}
GRID = [1e-4, 1e-2, 1.0]
VALIDATED = {"alpha": "validation", "validation_fraction": 0.2}


def make_bags(n: int, seed: int) -> tuple[list[Any], Any]:
    """Bags in the unit square and a number for each, of its mean and spread."""
    rng = np.random.default_rng(seed)
    centres, widths = rng.uniform(0.25, 0.75, (n, 2)), rng.uniform(0.03, 0.15, n)
    bags = [
        np.clip(c + w * rng.standard_normal((int(rng.integers(3, 14)), 2)), 0, 1)
        for c, w in zip(centres, widths, strict=True)
    ]
    y = np.sin(4 * centres[:, 0]) + 3 * widths + 0.05 * rng.standard_normal(n)
    return bags, y


BAGS, Y = make_bags(N, 1)
NEW, _ = make_bags(N_NEW, 2)
LABELS = np.where(np.arange(N) % 13 == 0, np.nan, Y)
CODES = np.digitize(Y, [0.8, 1.1]).astype(float)
WEIGHTS = np.random.default_rng(5).uniform(0.2, 3.0, N)
GROUPS = np.arange(N) // 5.0
RESPONSES = [1 - bag[: 2 + i % 9] for i, bag in enumerate(BAGS)]
LATER = (np.arange(N) // 10).astype(float)


class Stores:
    """Stores of the bags, in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        names = ("y", "two", "kind", "weight", "group", "day")
        columns = np.column_stack([LABELS, 2 * Y + GROUPS, CODES, WEIGHTS, GROUPS, LATER])
        self.numbers = BagStore.create(
            str(folder / "numbers"), 2, target_names=names, dtype=np.float64
        )
        self.numbers = self.numbers.append(BAGS, columns)
        self.pairs = BagStore.create(str(folder / "pairs"), 2, target_names=("w",), response_dims=2)
        self.pairs = self.pairs.append(BAGS, WEIGHTS[:, None], responses=RESPONSES)


def digest(*values: Any) -> str:
    """Return a hash of the bits of arrays, and of whatever JSON knows."""
    result = hashlib.sha256()
    for value in values:
        if isinstance(value, (dict, list, tuple, str, int, float, bool, type(None))):
            result.update(json.dumps(value, sort_keys=True, default=str).encode())
        else:
            array = np.ravel(np.asarray(value))
            result.update(array.tobytes() if array.dtype.kind != "U" else repr(array).encode())
    return result.hexdigest()[:16]


def rounded(value: Any) -> Any:
    """Return numbers of a report with 12 digits."""
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [rounded(item) for item in value]
    return float(f"{value:.12g}") if isinstance(value, (float, np.floating)) else value


def report_of(model: Any) -> Any:
    """Return a report without times and places, also those of its sections."""
    return without_times(model.report_)


def without_times(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    selected = {key: first for key, first in value.items() if key not in ("seconds", "data_url")}
    return {key: without_times(first) for key, first in selected.items()}


def fitted(model: Any, bags: Any = None) -> str:
    """Return the digest of everything that a fit has decided, and of its predictions."""
    path = (model.alpha_, model.alphas_, model.alpha_scores_)
    extra = [getattr(model, "mean_coefficients_", 0.0)]
    if hasattr(model, "predict_proba"):
        extra += [model.predict_proba(NEW), model.decision_function(NEW)]
    return digest(
        model.coef_, np.atleast_1d(model.intercept_), *path, model.predict(NEW), *extra,
        report_of(model), model.features_.to_dict(), model.holdout_,
    )  # fmt: skip


def regressor_cases(stores: Stores) -> Iterator[tuple[str, Callable[[], str]]]:
    """Yield fits of numbers, in memory and stored."""
    settings: dict[str, dict[str, Any]] = {
        "gcv": SMALL,
        "gcv float64": {**SMALL, "precision": "float64"},
        "gcv of rows": WIDE,
        "validation": {**SMALL, **VALIDATED},
        "validation of rows": {**WIDE, **VALIDATED},
        "fixed": {**SMALL, "alpha": 0.1},
        "least squares": {**SMALL, "alpha": 0.0, "precision": "float64"},
        "grid": {**SMALL, "alpha": GRID},
        "alphas": {**SMALL, "alphas": GRID},
        "linear": {**BASIS, "random_features": False},
        "baseline": {**SMALL, "baseline": "linear"},
        "baseline of rows": {**WIDE, "baseline": "linear"},
        "baseline validation": {**SMALL, "baseline": "linear", **VALIDATED},
        "cg": {**SMALL, "solver": "cg", "alpha": 0.1},
        "cg validation": {**SMALL, "solver": "cg", **VALIDATED},
        "cg rank": {**SMALL, "solver": "cg", "alpha": 0.1, "rank": 8},
        "cholesky": {**SMALL, "solver": "cholesky"},
        "nystroem": {**BASIS, "random_features": NystroemFeatures(n_features=40)},
        "learnt": {**BASIS, "random_features": LearnedFourierFeatures(n_features=16, n_sweeps=3)},
        "learnt baseline": {
            **BASIS,
            "random_features": LearnedFourierFeatures(n_features=16, n_sweeps=2),
            "baseline": "linear",
        },
        "hdd": {**SMALL, "embedding": HDDEmbedding("js", n_per_dim=3)},
        "mean map": {**SMALL, "embedding": MeanMapEmbedding(n_features=8)},
        "defaults": {"random_features": RandomFourierFeatures(n_features=64)},
    }
    for name, params in settings.items():
        yield f"memory {name}", lambda p=params: fitted(DoubleBasisRegressor(**p).fit(BAGS, LABELS))
        yield (
            f"stored {name}",
            lambda p=params: fitted(DoubleBasisRegressor(**p).fit(stores.numbers, target="y")),
        )
    fits: dict[str, dict[str, Any]] = {
        "holdout": {"target": "y", "holdout": 0.2},
        "holdout groups": {"target": "y", "holdout": {"fraction": 0.2, "groups": "group"}},
        "holdout after": {"target": "y", "holdout": {"after": 20, "time": "day"}},
        "two targets": {"target": ["y", "two"], "holdout": 0.1},
        "weights": {"target": "y", "sample_weight": "weight", "holdout": 0.1},
    }
    for name, value in fits.items():
        for kind, params in (("gcv", SMALL), ("validation", {**SMALL, **VALIDATED})):
            yield (
                f"{name} {kind}",
                lambda g=value, p=params: fitted(
                    DoubleBasisRegressor(**p).fit(stores.numbers, **g)
                ),
            )
    yield (
        "weights cg",
        lambda: fitted(
            DoubleBasisRegressor(**SMALL, solver="cg", alpha=0.1).fit(
                stores.numbers, target="y", sample_weight="weight"
            )
        ),
    )
    yield (
        "checkpoints",
        lambda: fitted(
            DoubleBasisRegressor(**SMALL).fit(
                stores.numbers, target="y", checkpoints=str(stores.folder / "kept")
            )
        ),
    )


def certain(stores: Stores) -> Iterator[tuple[str, Callable[[], str]]]:
    """Yield deviations, intervals and scores of bags."""

    def model(**params: Any) -> Any:
        return DoubleBasisRegressor(**SMALL, **params).fit(stores.numbers, target="y", holdout=0.2)

    def deviations() -> str:
        values, spread = model(uncertainty=True).predict(NEW, return_std=True)
        return digest(values, spread)

    yield "deviations", deviations
    yield "bag scores", lambda: digest(*model(uncertainty=True).bag_scores(NEW))
    yield "intervals", lambda: digest(*model().predict_interval(NEW, coverage=0.8))
    yield "conformalized", lambda: digest(*model().conformalize(BAGS, Y).predict_interval(NEW))
    yield "lazy intervals", lambda: digest(*map(np.asarray, model().predict_interval(stores.pairs)))
    yield (
        "lazy deviations",
        lambda: digest(
            *map(np.asarray, model(uncertainty=True).predict(stores.pairs, return_std=True))
        ),
    )
    yield "lazy", lambda: digest(np.asarray(model().predict(stores.pairs)))
    yield (
        "blocks",
        lambda: digest(
            *[b.prediction for b in iter_predictions(model(), stores.numbers, subset="holdout")]
        ),
    )


def classes(stores: Stores) -> Iterator[tuple[str, Callable[[], str]]]:
    """Yield fits of classes."""
    settings: dict[str, dict[str, Any]] = {
        "gcv": SMALL,
        "of rows": WIDE,
        "validation": {**SMALL, **VALIDATED},
        "balanced": {**SMALL, "class_weight": "balanced"},
        "weighed": {**SMALL, "class_weight": {"0": 2.0, "2": 0.5}},
        "cg": {**SMALL, "solver": "cg", "alpha": 0.1},
        "baseline": {**SMALL, "baseline": "linear"},
    }
    text = np.array(["low", "middle", "high"])[CODES.astype(int)]
    for name, params in settings.items():
        yield (
            f"classes {name}",
            lambda p=params: fitted(
                DoubleBasisClassifier(**p).fit(stores.numbers, target="kind", holdout=0.1)
            ),
        )
    yield "classes in memory", lambda: fitted(DoubleBasisClassifier(**SMALL).fit(BAGS, text))


def densities(stores: Stores) -> Iterator[tuple[str, Callable[[], str]]]:
    """Yield fits of densities."""
    third = {"response_embedding": ProjectionEmbedding(n_per_dim=4)}
    settings: dict[str, dict[str, Any]] = {
        "gcv": {**SMALL, **third},
        "auto": SMALL,
        "of rows": {**WIDE, **third},
        "projected": {**SMALL, **third, **VALIDATED, "alpha": "projected"},
        "validation": {**SMALL, **third, **VALIDATED},
        "own": {**SMALL, **third, "baseline": "own"},
        "own of rows": {**WIDE, **third, "baseline": "own"},
        "cg": {**SMALL, **third, "solver": "cg", "alpha": 0.1},
    }
    for name, params in settings.items():
        yield (
            f"densities {name}",
            lambda p=params: fitted(TripleBasisRegressor(**p).fit(stores.pairs, holdout=0.1)),
        )
    model = TripleBasisRegressor(**SMALL, **third)
    grid = {"grid": 5, "project": True}
    yield "densities in memory", lambda: fitted(model.fit(BAGS, RESPONSES))
    yield "density values", lambda: digest(model.fit(stores.pairs).predict_density(NEW, **grid))
    yield (
        "lazy density values",
        lambda: digest(np.asarray(model.fit(stores.pairs).predict_density(stores.pairs, grid=4))),
    )
    yield "density samples", lambda: digest(model.fit(stores.pairs).sample(NEW, 7).points)
    yield (
        "weighed densities",
        lambda: fitted(TripleBasisRegressor(**SMALL, **third).fit(stores.pairs, sample_weight="w")),
    )


def others(stores: Stores) -> Iterator[tuple[str, Callable[[], str]]]:
    """Yield folds, tunes, smoothers, judged and saved models, and rounds."""
    regressor, classifier = DoubleBasisRegressor(**SMALL), DoubleBasisClassifier(**SMALL)
    triple = TripleBasisRegressor(**SMALL)
    folds: dict[str, tuple[Any, dict[str, Any]]] = {
        "numbers": (regressor, {"target": "y"}),
        "numbers of rows": (DoubleBasisRegressor(**WIDE), {"target": "y"}),
        "validation": (DoubleBasisRegressor(**SMALL, **VALIDATED), {"target": "y"}),
        "baseline": (DoubleBasisRegressor(**SMALL, baseline="linear"), {"target": "y"}),
        "groups": (regressor, {"target": "y", "groups": "group"}),
        "time": (regressor, {"target": "y", "time": "day"}),
        "weights": (regressor, {"target": "y", "sample_weight": "weight"}),
        "classes": (classifier, {"target": "kind"}),
        "balanced": (
            DoubleBasisClassifier(**SMALL, class_weight="balanced"),
            {"target": "kind"},
        ),
        "learnt": (
            DoubleBasisRegressor(
                **BASIS, random_features=LearnedFourierFeatures(n_features=16, n_sweeps=2)
            ),
            {"target": "y"},
        ),
    }
    for name, (model, value) in folds.items():
        yield (
            f"folds {name}",
            lambda m=model, g=value: digest(
                rounded(cross_val_score(m, stores.numbers, cv=3, **g).tolist())
            ),
        )
    yield (
        "folds densities",
        lambda: digest(rounded(cross_val_score(triple, stores.pairs, cv=3).tolist())),
    )

    def scores() -> str:
        model = regressor.fit(stores.numbers, target="y", holdout=0.3)
        kinds = DoubleBasisClassifier(**SMALL).fit(stores.numbers, target="kind", holdout=0.3)
        pairs = TripleBasisRegressor(**SMALL).fit(stores.pairs)
        values = [model.score(stores.numbers), model.score(BAGS, Y), kinds.score(stores.numbers)]
        values += [kinds.score(BAGS, CODES), pairs.score(stores.pairs)]
        values += [model.score(BAGS, Y, sample_weight=WEIGHTS)]
        return digest(rounded(values))

    yield "scores", scores

    def judged() -> str:
        values = []
        for model, store in (
            (regressor.fit(stores.numbers, target="y", holdout=0.3), stores.numbers),
            (classifier.fit(stores.numbers, target="kind", holdout=0.3), stores.numbers),
            (triple.fit(stores.pairs, holdout=0.3), stores.pairs),
        ):
            errors = evaluate(model, store)
            values += [errors.values(), errors.error, errors.constant_error, errors.subset]
            values += [judge_fit(model, store)]
        return digest(rounded(values))

    yield "judged", judged

    def importance() -> str:
        values = [
            permutation_importance(regressor.fit(stores.numbers, target="y"), stores.numbers),
            permutation_importance(classifier.fit(stores.numbers, target="kind"), stores.numbers),
            permutation_importance(triple.fit(stores.pairs), stores.pairs),
        ]
        return digest(rounded([item.values() for item in values]))

    yield "importance", importance
    smoother = {"embedding": ProjectionEmbedding(n_per_dim=3)}
    yield (
        "smoother",
        lambda: digest(
            KernelSmoother(**smoother).fit(BAGS, LABELS).predict(NEW),
            KernelSmoother(**smoother).fit(stores.numbers, target="y").predict(NEW),
        ),
    )
    yield (
        "smoother of densities",
        lambda: digest(
            KernelSmoother(**smoother).fit(stores.pairs).predict(NEW),
            KernelSmoother(**smoother).fit(stores.pairs).predict_density(NEW, grid=4),
        ),
    )
    yield from tunes(stores)
    yield from saved(stores)
    for task in ("regression", "classification", "densities"):
        yield f"rounds {task}", lambda t=task: rounds(stores.folder / t, t)
    yield "rounds weighed", lambda: rounds(stores.folder / "weighed", "regression", "weight")


def tunes(stores: Stores) -> Iterator[tuple[str, Callable[[], str]]]:
    """Yield what successive halving finds."""
    search = Search(
        [ProjectionEmbedding(n_per_dim=3), MomentsEmbedding()],
        scale_multipliers=(0.7, 1.4),
        first_bags=120,
        linear=[MomentsEmbedding(covariance=False)],
    )
    features = RandomFourierFeatures(n_features=32, seed=1)

    def tuned(model: Any, store: BagStore, **inputs: Any) -> str:
        folder = tempfile.mkdtemp(dir=stores.folder)
        made = inputs.pop("search", search)
        tuning = tune(model, store, search=made, checkpoints=f"{folder}/cache", **inputs)
        errors = [{c: s.errors for c, s in item.items()} for item in tuning.scores]
        return digest(errors, tuning.winner, fitted(tuning.model), [vars(x) for x in tuning.leads])

    base = DoubleBasisRegressor(random_features=features)
    joined = Search(search.embeddings, scale_multipliers=(1.0,), first_bags=120, join=True)
    cases: dict[str, tuple[Any, BagStore, dict[str, Any]]] = {
        "numbers": (base, stores.numbers, {"target": "y", "holdout": 0.1}),
        "weights": (base, stores.numbers, {"target": "y", "sample_weight": "weight"}),
        "joined": (base, stores.numbers, {"target": "y", "search": joined}),
        "baseline": (
            DoubleBasisRegressor(random_features=features, baseline="linear"),
            stores.numbers,
            {"target": "y"},
        ),
        "classes": (
            DoubleBasisClassifier(random_features=features),
            stores.numbers,
            {"target": "kind"},
        ),
        "densities": (TripleBasisRegressor(random_features=features), stores.pairs, {}),
    }
    for name, (model, store, arguments) in cases.items():
        yield f"tune {name}", lambda m=model, s=store, g=arguments: tuned(m, s, **g)


def saved(stores: Stores) -> Iterator[tuple[str, Callable[[], str]]]:
    """Yield the attributes and arrays of saved models, and what they predict when loaded."""

    def written(model: Any) -> str:
        url = f"{tempfile.mkdtemp(dir=stores.folder)}/model.zarr"
        model.save(url)
        group = zarr.open_group(url, mode="r")
        values: Any = dict(group.attrs)["bagbasis_model"]
        values = {key: first for key, first in values.items() if key not in ("report", "versions")}
        arrays = [np.asarray(group[name]) for name in sorted(group.array_keys())]
        again = load_model(url)
        return digest(values, *arrays, again.coef_, again.predict(NEW), report_of(again))

    def number(**params: Any) -> Any:
        return DoubleBasisRegressor(**{**SMALL, **params}).fit(
            stores.numbers, target="y", holdout=0.2, sample_weight="weight"
        )

    nystroem = {"random_features": NystroemFeatures(n_features=40)}
    learnt = {"random_features": LearnedFourierFeatures(n_features=16, n_sweeps=2)}
    yield "saved numbers", lambda: written(number())
    yield "saved posterior", lambda: written(number(uncertainty=True))
    yield "saved baseline", lambda: written(number(baseline="linear"))
    yield "saved nystroem", lambda: written(number(**nystroem))
    yield "saved learnt", lambda: written(number(**learnt))
    yield (
        "saved classes",
        lambda: written(
            DoubleBasisClassifier(**SMALL, class_weight="balanced").fit(
                stores.numbers, target="kind"
            )
        ),
    )
    yield (
        "saved densities",
        lambda: written(TripleBasisRegressor(**SMALL, baseline="own").fit(stores.pairs)),
    )


def rounds(folder: Path, task: str, weight: str | None = None) -> str:
    """Return the digest of the models and reports of four rounds of retraining."""
    kinds: dict[str, Any] = {
        "regression": DoubleBasisRegressor,
        "classification": DoubleBasisClassifier,
        "densities": TripleBasisRegressor,
    }
    names = ("y", "weight") if weight else ("w",) if task == "densities" else ("y",)
    dims = 2 if task == "densities" else None
    store = BagStore.create(str(folder / "bags"), 2, target_names=names, response_dims=dims)
    labels = CODES if task == "classification" else Y
    columns = np.column_stack([labels, WEIGHTS])[:, : len(names)]
    params = {**SMALL, "alpha": [1e-3, 1e-2, 1e-1]}
    spec = Retraining(
        data_url=str(folder / "bags"),
        registry_url=str(folder / "registry"),
        estimator=kinds[task](**params),
        target=None if task == "densities" else "y",
        holdout=0.2,
        evaluate_bags=40,
        window=Window(bags=150),
        drift=DriftGate(n_bags=30, n_permutations=19),
        recompute_every=3,
        sample_weight=weight,
    )
    result: list[Any] = []
    for start, stop in ((0, 100), (100, 160), (160, 200), (200, 260)):
        responses = RESPONSES[start:stop] if dims else None
        store = store.append(BAGS[start:stop], columns[start:stop], responses=responses)
        report = retrain(spec).report
        model = load_model(Registry(spec.registry_url).model_url(report["model"]))
        keys = ("decision", "n_judged", "window", "bag_passes", "p_values", "n_new_labelled")
        result += [model.coef_, np.atleast_1d(model.intercept_), model.predict(NEW)]
        result += [rounded({key: report[key] for key in (*keys, "error", "champion_error")})]
    return digest(*result)


def table() -> dict[str, str]:
    """Return the digest of each case."""
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    result: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        stores = Stores(Path(folder))
        for cases in (regressor_cases, certain, classes, densities, others):
            for name, case in cases(stores):
                assert name not in result
                result[name] = case()
    return result


def compare(before: dict[str, str], now: dict[str, str]) -> list[str]:
    """Return the names of the cases that differ."""
    names = sorted({*before, *now})
    return [name for name in names if before.get(name) != now.get(name)]


if __name__ == "__main__":
    target, *earlier = map(Path, sys.argv[1:])
    made = table()
    target.write_text(json.dumps(made, indent=1) + "\n")
    different = compare(json.loads(earlier[0].read_text()), made) if earlier else []
    print(f"{len(made)} cases", *(f"differs: {name}" for name in different), sep="\n")
    sys.exit(bool(different))
