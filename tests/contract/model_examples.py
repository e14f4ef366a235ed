"""A valid call of every public callable of the models, as `examples` has them.

The constructor of an estimator only stores, so its example fits and uses it, too.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np

from bagbasis import models
from tests.contract.data_examples import Call, Example, calls
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
        arguments = {} if kind is models.TripleBasisRegressor else {"target": "c"}
        if kind is models.DoubleBasisRegressor:
            arguments = {"target": "y"}
        return model.fit(w.store, **arguments).bag_scores, {"X": w.arrays}

    return example


KINDS = models.DoubleBasisRegressor, models.DoubleBasisClassifier, models.TripleBasisRegressor
MODEL = {"embedding": "embedding", "random_features": "second"}

MODEL_EXAMPLES: dict[str, Example] = {
    "Checkpoints": lambda w: (
        lambda **values: w.unfitted().fit(
            w.store, target="y", checkpoints=models.Checkpoints(**values)
        ),
        {"url": w.new("")},
    ),
    **{kind.__name__: used(kind, "predict", **MODEL) for kind in KINDS},
    **{f"{kind.__name__}.bag_scores": _scored(kind) for kind in KINDS},
    **{
        f"{kind.__name__}.report": lambda w: (w.classifier.report, {"url": f"{w.new()}.html"})
        for kind in KINDS
    },
    **calls(
        "DoubleBasisRegressor.",
        lambda w: deepcopy(w.regressor),
        predict=lambda w: {"X": w.arrays},
        conformalize=lambda w: {"X": w.arrays, "y": w.y, "groups": np.arange(N) // 2},
        save=lambda w: {"url": w.new()},
        **dict.fromkeys(("fit", "summary", "score"), lambda w: {"X": w.arrays, "y": w.y}),
    ),
    "DoubleBasisRegressor.predict_interval": lambda w: (
        deepcopy(w.regressor).conformalize(w.arrays, w.y).predict_interval,
        {"X": w.arrays, "coverage": 0.5},
    ),
    **calls(
        "DoubleBasisClassifier.",
        lambda w: deepcopy(w.classifier),
        conformalize=lambda w: {"X": w.arrays, "y": w.classes, "cv": 3},
        save=lambda w: {"url": w.new()},
        **dict.fromkeys(("fit", "summary", "score"), lambda w: {"X": w.arrays, "y": w.classes}),
        **dict.fromkeys(
            ("predict", "predict_proba", "predict_log_proba", "decision_function"),
            lambda w: {"X": w.arrays},
        ),
    ),
    "DoubleBasisClassifier.predict_set": lambda w: (
        deepcopy(w.classifier).conformalize(w.arrays, w.classes).predict_set,
        {"X": w.arrays, "coverage": 0.6},
    ),
    **calls(
        "TripleBasisRegressor.",
        lambda w: deepcopy(w.triple),
        summary=lambda w: {"X": w.arrays, "y": w.answers},
        **dict.fromkeys(("fit", "score"), lambda w: {"X": w.arrays, "responses": w.answers}),
    ),
    **calls(
        "RidgeModel.",
        lambda w: w.regressor.model_,
        predicted=lambda w: {"bags": w.arrays},
        interval_rows=lambda w: {"bags": w.arrays},
        decision_rows=lambda w: {"bags": w.arrays},
        predict=lambda w: {"X": w.arrays},
        apply=lambda w: {"X": w.arrays, "of_bags": len, "tail": ()},
        folded={"rounding": 1e-9},
    ),
    "RidgeModel.score_rows": lambda w: (
        w.unfitted().set_params(uncertainty=True).fit(w.arrays, w.y).model_.score_rows,
        {"bags": w.arrays},
    ),
    "KernelSmoother": used(models.KernelSmoother, "predict", embedding="embedding"),
    **calls(
        "KernelSmoother.",
        lambda w: models.KernelSmoother(w.embedding).fit(w.arrays, w.y),
        **dict.fromkeys(("fit", "score"), lambda w: {"X": w.arrays, "y": w.y}),
    ),
    "StreamingRidge": lambda w: (
        lambda **values: models.StreamingRidge(**values).fit(w.features, w.y).solve(),
        {},
    ),
    **calls(
        "StreamingRidge.",
        lambda w: models.StreamingRidge().fit(w.features, w.y),
        solve={},
        predict=lambda w: {"X": w.features},
        **dict.fromkeys(("fit", "partial_fit"), lambda w: {"X": w.features, "y": w.y}),
    ),
    "iter_predictions": lambda w: (
        lambda **values: list(models.iter_predictions(**values)),
        {"model": w.regressor, "store": w.store},
    ),
    **calls(
        "",
        lambda w: models,
        features=lambda w: {
            "store": w.store, "embedding": w.embedding, "random_features": w.second,
        },
        load_model=lambda w: {"url": w.model_url},
        read_predictions=lambda w: {"url": w.predictions_url},
        save_model=lambda w: {"model": w.regressor, "url": w.new()},
        write_predictions=lambda w: {"model": w.regressor, "store": w.store, "url": w.new()},
    ),
}  # fmt: skip

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
