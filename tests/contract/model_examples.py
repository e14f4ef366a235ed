"""A valid call of every public callable of the models, as `examples` has them.

The constructor of an estimator only stores, so its example fits and uses it, too.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bagbasis import regression
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
                    if kind is regression.TripleBasisRegressor
                    else {"y": w.classes if kind is regression.DoubleBasisClassifier else w.y}
                )
                return model.fit(w.arrays, **labels).predict(w.arrays[:2])
            data = w.features if use == "rows" else w.distances if use == "matrix" else w.arrays
            return model.fit_transform(data)

        values = {name: getattr(w, value) for name, value in fixed.items()}
        return call, values

    return example


def _scored(kind: type) -> Example:
    """The example of `bag_scores` of an estimator."""

    def example(w: World) -> Call:
        model = kind(w.embedding, w.second, uncertainty=True)
        given = {} if kind is regression.TripleBasisRegressor else {"target": "c"}
        if kind is regression.DoubleBasisRegressor:
            given = {"target": "y"}
        return model.fit(w.store, **given).bag_scores, {"X": w.arrays}

    return example


MODEL = {"embedding": "embedding", "random_features": "second"}

MODEL_EXAMPLES: dict[str, Example] = {
    "regression.Checkpoints": lambda w: (
        lambda **values: w.unfitted().fit(
            w.store, target="y", checkpoints=regression.Checkpoints(**values)
        ),
        {"url": w.new("")},
    ),
    "regression.DoubleBasisRegressor": used(regression.DoubleBasisRegressor, "predict", **MODEL),
    "regression.DoubleBasisRegressor.fit": lambda w: (w.unfitted().fit, {"X": w.arrays, "y": w.y}),
    "regression.DoubleBasisRegressor.predict": lambda w: (w.regressor.predict, {"X": w.arrays}),
    **{
        f"regression.{kind.__name__}.bag_scores": _scored(kind)
        for kind in (
            regression.DoubleBasisRegressor,
            regression.DoubleBasisClassifier,
            regression.TripleBasisRegressor,
        )
    },
    "regression.DoubleBasisRegressor.conformalize": lambda w: (
        w.unfitted().fit(w.store, target="y").conformalize,
        {"X": w.arrays, "y": w.y, "groups": np.arange(N) // 2},
    ),
    "regression.DoubleBasisRegressor.predict_interval": lambda w: (
        w.unfitted().fit(w.store, target="y").conformalize(w.arrays, w.y).predict_interval,
        {"X": w.arrays, "coverage": 0.5},
    ),
    "regression.DoubleBasisRegressor.save": lambda w: (w.regressor.save, {"url": w.new()}),
    "regression.DoubleBasisClassifier": used(regression.DoubleBasisClassifier, "predict", **MODEL),
    "regression.DoubleBasisClassifier.fit": lambda w: (
        regression.DoubleBasisClassifier(w.embedding, w.second).fit,
        {"X": w.arrays, "y": w.classes},
    ),
    "regression.DoubleBasisClassifier.predict": lambda w: (
        w.classifier.predict,
        {"X": w.arrays},
    ),
    "regression.DoubleBasisClassifier.predict_proba": lambda w: (
        w.classifier.predict_proba,
        {"X": w.arrays},
    ),
    "regression.DoubleBasisClassifier.decision_function": lambda w: (
        w.classifier.decision_function,
        {"X": w.arrays},
    ),
    "regression.DoubleBasisClassifier.score": lambda w: (
        w.classifier.score,
        {"X": w.arrays, "y": w.classes},
    ),
    "regression.DoubleBasisRegressor.score": lambda w: (
        w.regressor.score,
        {"X": w.arrays, "y": w.y},
    ),
    "regression.DoubleBasisClassifier.save": lambda w: (w.classifier.save, {"url": w.new()}),
    "regression.TripleBasisRegressor": used(regression.TripleBasisRegressor, "predict", **MODEL),
    "regression.TripleBasisRegressor.fit": lambda w: (
        regression.TripleBasisRegressor(w.embedding, w.second, w.embedding).fit,
        {"X": w.arrays, "responses": w.answers},
    ),
    "regression.TripleBasisRegressor.score": lambda w: (
        w.triple.score,
        {"X": w.arrays, "responses": w.answers},
    ),
    "regression.KernelSmoother": used(regression.KernelSmoother, "predict", embedding="embedding"),
    "regression.KernelSmoother.fit": lambda w: (
        regression.KernelSmoother(w.embedding).fit,
        {"X": w.arrays, "y": w.y},
    ),
    "regression.KernelSmoother.score": lambda w: (
        regression.KernelSmoother(w.embedding).fit(w.arrays, w.y).score,
        {"X": w.arrays, "y": w.y},
    ),
    "regression.features": lambda w: (
        regression.features,
        {"store": w.store, "embedding": w.embedding, "random_features": w.second},
    ),
    "regression.iter_predictions": lambda w: (
        lambda **values: list(regression.iter_predictions(**values)),
        {"model": w.regressor, "store": w.store},
    ),
    "regression.load_model": lambda w: (regression.load_model, {"url": w.model_url}),
    "regression.save_model": lambda w: (
        regression.save_model,
        {"model": w.regressor, "url": w.new()},
    ),
    "regression.write_predictions": lambda w: (
        regression.write_predictions,
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
        MODEL_EXAMPLES[f"regression.{_key}.{_method}"] = lambda w, m=(_name, _method), v=_values: (
            getattr(getattr(w, m[0]), m[1]),
            {"url": w.new()} if v is None else {"X": w.arrays, **v},
        )
