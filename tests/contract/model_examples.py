"""A valid call of every public callable of the models, as `examples` has them.

The constructor of an estimator only stores, so its example fits and uses it, too.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np

from bagbasis import models
from tests.contract.data_examples import Call, Example
from tests.contract.world import N, World


def used(kind: type, use: str, **fixed: Any) -> Example:
    """The example of an estimator: made, fitted and used."""

    def example(w: World) -> Call:
        def call(**parameters: Any) -> object:
            model = kind(**parameters)
            if use == "predict":
                labels = (
                    {"responses": w.answers}
                    if kind is models.TripleBasisRegressor
                    else {"y": w.classes if kind is models.DoubleBasisClassifier else w.y}
                )
                return model.fit(w.arrays, **labels).predict(w.arrays[:2])
            others = {"rows": "features", "matrix": "distances", "series": "series"}
            data = getattr(w, others.get(use, "arrays"))
            return model.fit_transform(data)

        values = {name: getattr(w, value) for name, value in fixed.items()}
        return call, values

    return example


def _scored(kind: type) -> Example:
    """The example of `bag_scores` of an estimator."""

    def example(w: World) -> Call:
        model = kind(w.embedding, w.second, uncertainty=True)
        given = {} if kind is models.TripleBasisRegressor else {"target": "c"}
        if kind is models.DoubleBasisRegressor:
            given = {"target": "y"}
        return model.fit(w.store, **given).bag_scores, {"X": w.arrays}

    return example


MODEL = {"embedding": "embedding", "random_features": "second"}

MODEL_EXAMPLES: dict[str, Example] = {
    "Checkpoints": lambda w: (
        lambda **values: w.unfitted().fit(
            w.store, target="y", checkpoints=models.Checkpoints(**values)
        ),
        {"url": w.new("")},
    ),
    "DoubleBasisRegressor": used(models.DoubleBasisRegressor, "predict", **MODEL),
    "DoubleBasisRegressor.fit": lambda w: (w.unfitted().fit, {"X": w.arrays, "y": w.y}),
    "DoubleBasisRegressor.predict": lambda w: (w.regressor.predict, {"X": w.arrays}),
    **{
        f"{kind.__name__}.bag_scores": _scored(kind)
        for kind in (
            models.DoubleBasisRegressor,
            models.DoubleBasisClassifier,
            models.TripleBasisRegressor,
        )
    },
    "DoubleBasisRegressor.conformalize": lambda w: (
        deepcopy(w.regressor).conformalize,
        {"X": w.arrays, "y": w.y, "groups": np.arange(N) // 2},
    ),
    "DoubleBasisRegressor.predict_interval": lambda w: (
        deepcopy(w.regressor).conformalize(w.arrays, w.y).predict_interval,
        {"X": w.arrays, "coverage": 0.5},
    ),
    "DoubleBasisRegressor.save": lambda w: (w.regressor.save, {"url": w.new()}),
    "DoubleBasisClassifier": used(models.DoubleBasisClassifier, "predict", **MODEL),
    "DoubleBasisClassifier.fit": lambda w: (
        models.DoubleBasisClassifier(w.embedding, w.second).fit,
        {"X": w.arrays, "y": w.classes},
    ),
    "DoubleBasisClassifier.predict": lambda w: (
        w.classifier.predict,
        {"X": w.arrays},
    ),
    "DoubleBasisClassifier.predict_proba": lambda w: (
        w.classifier.predict_proba,
        {"X": w.arrays},
    ),
    **{
        f"{kind}.report": lambda w: (w.classifier.report, {"url": f"{w.new()}.html"})
        for kind in ("DoubleBasisRegressor", "DoubleBasisClassifier", "TripleBasisRegressor")
    },
    "DoubleBasisClassifier.conformalize": lambda w: (
        deepcopy(w.classifier).conformalize,
        {"X": w.arrays, "y": w.classes, "cv": 3},
    ),
    "DoubleBasisClassifier.predict_set": lambda w: (
        deepcopy(w.classifier).conformalize(w.arrays, w.classes).predict_set,
        {"X": w.arrays, "coverage": 0.6},
    ),
    "DoubleBasisClassifier.decision_function": lambda w: (
        w.classifier.decision_function,
        {"X": w.arrays},
    ),
    "DoubleBasisClassifier.score": lambda w: (
        w.classifier.score,
        {"X": w.arrays, "y": w.classes},
    ),
    "DoubleBasisRegressor.summary": lambda w: (
        w.regressor.summary,
        {"X": w.arrays, "y": w.y},
    ),
    "TripleBasisRegressor.summary": lambda w: (
        w.triple.summary,
        {"X": w.arrays, "y": w.answers},
    ),
    "DoubleBasisRegressor.score": lambda w: (
        w.regressor.score,
        {"X": w.arrays, "y": w.y},
    ),
    "DoubleBasisClassifier.save": lambda w: (w.classifier.save, {"url": w.new()}),
    "DoubleBasisClassifier.summary": lambda w: (
        w.classifier.summary,
        {"X": w.arrays, "y": w.classes},
    ),
    "TripleBasisRegressor": used(models.TripleBasisRegressor, "predict", **MODEL),
    "TripleBasisRegressor.fit": lambda w: (
        models.TripleBasisRegressor(w.embedding, w.second, w.embedding).fit,
        {"X": w.arrays, "responses": w.answers},
    ),
    "TripleBasisRegressor.score": lambda w: (
        w.triple.score,
        {"X": w.arrays, "responses": w.answers},
    ),
    "KernelSmoother": used(models.KernelSmoother, "predict", embedding="embedding"),
    "KernelSmoother.fit": lambda w: (
        models.KernelSmoother(w.embedding).fit,
        {"X": w.arrays, "y": w.y},
    ),
    "KernelSmoother.score": lambda w: (
        models.KernelSmoother(w.embedding).fit(w.arrays, w.y).score,
        {"X": w.arrays, "y": w.y},
    ),
    "StreamingRidge": lambda w: (
        lambda **values: models.StreamingRidge(**values).fit(w.features, w.y).solve(),
        {},
    ),
    **{
        f"StreamingRidge.{name}": lambda w, name=name: (
            getattr(models.StreamingRidge(), name),
            {"X": w.features, "y": w.y},
        )
        for name in ("fit", "partial_fit")
    },
    "StreamingRidge.solve": lambda w: (
        models.StreamingRidge().fit(w.features, w.y).solve,
        {},
    ),
    "StreamingRidge.predict": lambda w: (
        models.StreamingRidge().fit(w.features, w.y).predict,
        {"X": w.features},
    ),
    "features": lambda w: (
        models.features,
        {"store": w.store, "embedding": w.embedding, "random_features": w.second},
    ),
    "iter_predictions": lambda w: (
        lambda **values: list(models.iter_predictions(**values)),
        {"model": w.regressor, "store": w.store},
    ),
    "load_model": lambda w: (models.load_model, {"url": w.model_url}),
    "read_predictions": lambda w: (models.read_predictions, {"url": w.predictions_url}),
    "save_model": lambda w: (
        models.save_model,
        {"model": w.regressor, "url": w.new()},
    ),
    "write_predictions": lambda w: (
        models.write_predictions,
        {"model": w.regressor, "store": w.store, "url": w.new()},
    ),
}

for _key, _name in (("TripleBasisRegressor", "triple"), ("KernelSmoother", "smoother")):
    for _method, _values in {
        "predict": {},
        "densities": {},
        "predict_density": {"grid": 3},
        "sample": {"n": 3},
        **({"save": None} if _name == "triple" else {}),
    }.items():
        MODEL_EXAMPLES[f"{_key}.{_method}"] = lambda w, m=(_name, _method), v=_values: (
            getattr(getattr(w, m[0]), m[1]),
            {"url": w.new()} if v is None else {"X": w.arrays, **v},
        )
