"""`Embeddings`: the result of ``search.embedding: auto`` compared with single embeddings and peers.

It is not in the papers. Peers are forests on means and covariances, and deep sets.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import ensemble

from bagbasis import (
    Bags,
    BagStore,
    DoubleBasisClassifier,
    DoubleBasisRegressor,
    MomentsEmbedding,
    NystroemFeatures,
)
from bagbasis.data.labelled.labelled import box_of_bags
from bagbasis.datasets import Digits, GMMComponents
from bagbasis.models import Search, tune
from bagbasis.models.tuning.leads import Losses, difference

from ...configs.search_sections import labels_of
from ...configs.sections import section_of
from ..data.samples import Patches
from ..kit import Callback, Experiment, GroupedBars, Measure, Params
from ..kit.learning import constant_of, draw_from

_Labelled = tuple[Bags, NDArray[np.float64], NDArray[np.int64]]
"""Bags, targets and groups."""

_AUTO, _LEARNED = "auto", "deep sets"
_TREES = {"random forest": "RandomForest", "gradient boosting": "HistGradientBoosting"}
SINGLES = ("moments", "mean map", "js", "sliced", "ridge on means")  # as `Search.auto` has them
_N_FILTERS, N_CLASSES = 8, 5
PER_GROUP, _SPREAD = 3, 0.5  # bags of a group, and the deviation of its effect
_VALIDATION = 0.3  # of the bags: few are held out otherwise


class Embeddings(Experiment):
    name = "embeddings"
    title = "Which embedding, chosen by bags held out"
    pictures = (GroupedBars("embeddings.png", "methods.*.error", panels="data", label="error"),)

    def measures(self) -> list[Measure]:
        return [Measure("", self._errors, "{data}", {"data": list(DATA)}, self.shared())]

    def _errors(self, p: Params, progress: Callback) -> dict[str, Any]:
        """Return test losses' means and how far each method is behind auto."""
        s, (draw, is_class) = self.settings, DATA[p["data"]]
        bags, y, groups = draw(s.n_train + s.n_test, self.seed)
        n_train = len(bags) * s.n_train // (s.n_train + s.n_test)  # there are 1,797 digits
        train, test = slice(n_train), slice(n_train, None)
        kind = DoubleBasisClassifier if is_class else DoubleBasisRegressor
        base = kind(validation_fraction=_VALIDATION)
        url = self.out_dir / "stores" / f"{p['data'].replace(' ', '-')}.zarr"
        store = BagStore.create(
            url, bags.n_dims, target_names=["y", "group"], box=box_of_bags(bags), overwrite=True
        )
        store = store.append(bags[train], np.column_stack([y, groups])[train])
        search = replace(Search.auto(), scale_multipliers=s.multipliers)
        holdout = {"fraction": 0.0, "groups": "group"}
        tuned = tune(base, store, search=search, target="y", holdout=holdout, progress=progress)
        predicted = {_AUTO: tuned.model.predict(bags[test])}
        alone = replace(search, join=False, heads=None, choose=False)
        base.set_params(random_features=NystroemFeatures(n_features=min(s.n_features, n_train)))
        singles = tune(base, store, search=alone, target="y", holdout=holdout, progress=progress)
        last = {singles.candidates[c].embedding: c for c in _by_error(singles.scores)}
        for place, name in enumerate(SINGLES):
            model: Any = singles.candidates[last[place]].estimator(base)
            predicted[name] = model.fit(store, target="y").predict(bags[test])
        rows = MomentsEmbedding(dtype="float64").fit(bags[train])
        sizes = [{"n_estimators": s.n_trees}, {}]
        for (name, prefix), params in zip(_TREES.items(), sizes, strict=True):
            made = getattr(ensemble, prefix + ("Classifier" if is_class else "Regressor"))
            peer = made(**params, random_state=self.seed).fit(rows.transform(bags[train]), y[train])
            predicted[name] = peer.predict(rows.transform(bags[test]))
        network = _network(is_class, s.network_steps, self.seed)
        network.fit(store, target="y", holdout=holdout, progress=progress)
        predicted[_LEARNED] = network.predict(bags[test])
        losses = {n: _losses(each.ravel(), y[test], is_class) for n, each in predicted.items()}
        constant = np.full(len(y[test]), constant_of(y[train], is_class))
        methods = {}
        for name, each in losses.items():
            behind, se = difference(losses[_AUTO], each, groups[test])
            methods[name] = {"behind": behind, "se": se, "error": float(each.values.mean())}
        winner = tuned.candidates[tuned.winner]
        sections = [section_of(embedding) for embedding in tuned.embeddings]
        return {
            "winner": labels_of(sections)[winner.embedding],
            "constant": float(_losses(constant, y[test], is_class).values.mean()),
            "methods": methods,
        }


def _by_error(scores: Sequence[dict[int, Any]]) -> list[int]:
    """Return the candidates by their errors on the last rung that each reached, best first."""
    reached = {c: (r, -score.error) for r, rung in enumerate(scores) for c, score in rung.items()}
    return sorted(reached, key=lambda c: reached[c])


def _network(is_class: bool, n_steps: int, seed: int) -> Any:  # noqa: ANN401 - of an extra
    """Return deep sets that look at the bags held out, whole groups, forty times."""
    from bagbasis.neural import DeepSetsClassifier, DeepSetsRegressor

    kind: Any = DeepSetsClassifier if is_class else DeepSetsRegressor
    every, decay = max(1, n_steps // 40), max(1, n_steps // 8)
    return kind(n_steps=n_steps, validate_every=every, decay_steps=decay, seed=seed)


def _losses(predicted: NDArray[Any], y: NDArray[np.float64], is_class: bool) -> Losses:
    values = (predicted != y).astype(float) if is_class else (predicted - y) ** 2
    return Losses(np.arange(len(y)), values, np.ones(len(y)))


def _digits(n: int, seed: int) -> _Labelled:
    digits = Digits(seed=seed)
    bags, y = draw_from(digits, min(n, digits.n_bags))
    return bags, y, np.arange(len(y))


def _mixtures(n: int, seed: int) -> _Labelled:
    bags, y = draw_from(GMMComponents(n_points=100, seed=seed), n)
    return bags, y, np.arange(n)


def _filters(n: int, seed: int) -> _Labelled:
    sizes = {"n_classes": N_CLASSES, "n_filters": _N_FILTERS, "n_points": 60}
    bags, y = Patches(**sizes, dependent=False, seed=seed).images(n, 0)
    return bags, y.astype(float), np.arange(n)


def _grouped(n: int, seed: int) -> _Labelled:
    """Bags of 20 points in R²: what their groups add to target and place hides the shape."""
    rng = np.random.default_rng(seed)
    groups = np.arange(n) // PER_GROUP
    effect = rng.standard_normal(groups[-1] + 1)[groups]
    angle, length = rng.uniform(0, np.pi, n), rng.uniform(0.02, 0.15, n)
    bags = []
    for g, a, r in zip(effect, angle, length, strict=True):
        side = rng.choice([-1, 1], (20, 1)) * r * np.array([np.cos(a), np.sin(a)])
        bags.append((0.5 + 0.05 * g + side + 0.02 * rng.standard_normal((20, 2))).clip(0, 1))
    return Bags.from_list(bags), np.cos(2 * angle) + 10 * length + _SPREAD * effect, groups


# By what people see: (bags, targets and groups of a number and a seed; whether targets are classes)
DATA: dict[str, tuple[Callable[[int, int], _Labelled], bool]] = {
    "digits": (_digits, True),
    "mixture counting": (_mixtures, False),
    "filters": (_filters, True),
    "groups": (_grouped, False),
}
