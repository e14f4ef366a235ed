"""`ImageClasses`: images as bags of pixels (x, y, v), classified under several geometries.

001, §5.3 and Figure 4, on the digits bundled with scikit-learn; at scale "paper" on the cats and
dogs of CIFAR-10 too, as there, for those who have its files in scikit-learn's data folder.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from typing_extensions import override

from bagbasis import Bags, DoubleBasisClassifier
from bagbasis.core.arrays import Floats
from bagbasis.datasets import Digits
from bagbasis.datasets.digits import MAX_INTENSITY, SIDE

from ..data.cifar10 import cats_and_dogs
from ..kit import Callback, Curves, Experiment, Measure, Params, Settings, counted
from ..kit.learning import Learner, describe_all, draw_from, geometries, predict_by_kl
from ..timing import timed

CIFAR_FOLDER = "cifar-10-batches-bin"
_Labelled = tuple[Bags, Floats]
_OfSplit = Callable[[_Labelled, _Labelled], dict[str, Any]]


class ImageClasses(Experiment):
    name = "images"
    title = "Classifying images by the distribution of their pixels"
    source = "001, §5.3"
    pictures = (Curves("accuracies.png", "accuracies", by="method", panels="images"),)

    @cached_property
    def tasks(self) -> dict[str, Settings]:
        """The tasks whose images are on this machine."""
        every = {name: Settings(**task) for name, task in self.settings.tasks.items()}
        here = cifar_folder().is_dir()
        return {name: t for name, t in every.items() if t.images == "digits" or here}

    @property
    @override
    def size(self) -> str:
        missing = [name for name in self.settings.tasks if name not in self.tasks]
        left_out = f"; left out, as CIFAR-10 is not here: {', '.join(missing)}" if missing else ""
        return super().size + left_out

    def measures(self) -> list[Measure]:
        listed = []
        for name, task in self.tasks.items():
            shared, choosing = (
                {key: vars(task)[key] for key in keys.split()}
                for keys in ("n_train n_splits n_features", "choose_features n_choose multipliers")
            )
            shared["images"] = name
            methods = {"method candidates": describe_all(_methods(task))}
            label = "{images}, {method}"
            listed.append(Measure("", self._double_basis, label, methods, {**shared, **choosing}))
            if task.kl_splits:
                params = {"method": "KL", "kl_splits": task.kl_splits, "spread": True}
                listed.append(Measure("", self._by_gram, label, {}, {**shared, **params}))
        return listed

    def _over_splits(
        self, p: Params, n_splits: int, measure: _OfSplit, progress: Callback
    ) -> dict[str, Any]:
        """Measure accuracies and choices of each split, and medians of seconds."""
        measured = []
        for split in counted(range(n_splits), progress):
            train, test = self.split_of(self.tasks[p["images"]], split)
            measured.append(measure(train, test))
        return {
            "accuracies": [each["accuracies"] for each in measured],
            "seconds": np.median([each["seconds"] for each in measured], axis=0),
            "choices": [each["choice"] for each in measured],
            "n_test": len(test[1]),
        }

    def split_of(self, task: Settings, split: int) -> tuple[_Labelled, _Labelled]:
        """Training images in random order, and test images; only the digits' depend on the seed."""
        seed, is_digits = 100 * self.seed + split, task.images == "digits"
        train, test = (
            draw_from(Digits(split=s, seed=seed)) if is_digits else cats_and_dogs(cifar_folder(), s)
            for s in ("train", "test")
        )
        order = np.random.default_rng(seed).permutation(len(train[1]))
        return (train[0][order], train[1][order]), test

    def _double_basis(self, p: Params, progress: Callback) -> dict[str, Any]:
        """Embedding and σ are chosen with ``n_choose`` training images and fewer features."""
        task, learner = self.tasks[p["images"]], Learner(DoubleBasisClassifier, self.seed)

        def of_split(train: _Labelled, test: _Labelled) -> dict[str, Any]:
            few = train[0][: task.n_choose], train[1][: task.n_choose]
            candidates = _methods(task)[p["method"]]
            choice = learner.choose(candidates, task.multipliers, few, task.choose_features)
            accuracies, seconds = [], []
            for n in task.n_train:
                training = train[0][:n], train[1][:n]
                predicted, took = learner.timed(choice, training, task.n_features, test[0])
                seconds.append(took)
                accuracies.append(float((predicted == test[1]).mean()))
            return {"accuracies": accuracies, "seconds": seconds, "choice": choice.values}

        return self._over_splits(p, task.n_splits, of_split, progress)

    def _by_gram(self, p: Params, progress: Callback) -> dict[str, Any]:
        """Learn by KL, from the smallest number of training images.

        Neighbours at distance zero tell the estimate nothing: points are spread over their cells.
        """
        task = self.tasks[p["images"]]
        n = task.n_train[0]

        def of_split(train: _Labelled, test: _Labelled) -> dict[str, Any]:
            bags, queries = _spread(train[0], 0), _spread(test[0], 1)
            classes, codes = np.unique(train[1][:n], return_inverse=True)
            known = bags[:n], np.eye(len(classes))[codes]
            (scores, choice), seconds = timed(predict_by_kl, *known, queries)
            accuracy = float((classes[scores.argmax(axis=1)] == test[1]).mean())
            return {"accuracies": [accuracy], "seconds": [seconds], "choice": choice}

        return self._over_splits(p, task.kl_splits, of_split, progress)


def _methods(task: Settings) -> dict[str, list[Any]]:
    n_per_dim = {"n_per_dim": task.n_per_dim}
    return geometries(task.geometries, {}, n_per_dim, n_per_dim, 1024)


def _spread(bags: Bags, seed: int) -> Bags:
    """Return the digits, with each point uniform in the cell of which it was the centre."""
    cells = np.array([1 / SIDE, 1 / SIDE, 1 / MAX_INTENSITY])
    moved = np.random.default_rng(seed).uniform(-0.5, 0.5, bags.points.shape) * cells
    return Bags.trusted((bags.points + moved).astype(np.float32), bags.offsets)


def cifar_folder() -> Path:
    """Return the folder of the binary version of CIFAR-10, in scikit-learn's data folder."""
    home = os.environ.get("SCIKIT_LEARN_DATA", "~/scikit_learn_data")
    return Path(home).expanduser() / CIFAR_FOLDER
