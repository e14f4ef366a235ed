"""`ImageClasses`: images as bags of pixels (x, y, v), classified under several geometries.

001, §5.3 and Figure 4, on the digits bundled with scikit-learn; at scale "paper" on the cats and
dogs of CIFAR-10 too, as there, for those who have its files in scikit-learn's data folder.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from bagbasis import Bags, DoubleBasisClassifier
from bagbasis.datasets import Digits
from bagbasis.datasets.digits import MAX_INTENSITY, SIDE

from ....core.arrays import Floats
from ...configs import Section
from ...terminal import Callback
from ..data.cifar10 import CIFAR10
from ..kit.experiment import Experiment, Measure, Params, Result, Scale, Table
from ..kit.frame import select
from ..kit.gram_peer import GramPeer
from ..kit.learning import Geometries, Learner, describe_all, draw_bags
from ..kit.notes import remarks
from ..kit.plots import Curve, lines, plain_log
from ..kit.verdicts import MEANING, PICKED, lead_text, order_verdict
from .gmm_components import HDD, OTHERS, STYLES

CIFAR_FOLDER = "cifar-10-batches-bin"
Labelled = tuple[Bags, Floats]


class Task(Section):
    """One kind of images, see ``configs/experiments/images.yaml``."""

    images: str
    n_train: list[int]
    n_splits: int
    n_features: int
    n_choose: int
    choose_features: int
    multipliers: list[float]
    kl_splits: int
    n_per_dim: int
    geometries: Geometries

    @property
    def methods(self) -> dict[str, list[Any]]:
        """The embeddings to choose from, by method."""
        n_per_dim = {"n_per_dim": self.n_per_dim}
        return self.geometries.methods({}, n_per_dim, n_per_dim, 1024)


class Tasks(Scale):
    """The tasks of a scale, by name."""

    tasks: dict[str, Task]


class ImageClasses(Experiment[Tasks]):
    """See the module; a point is a method on one kind of images, over all splits."""

    name = "images"
    title = "Classifying images by the distribution of their pixels"
    source = "001, §5.3"
    kind = Tasks

    @cached_property
    def tasks(self) -> dict[str, Task]:
        """The tasks whose images are on this machine."""
        every = self.settings.tasks.items()
        return {k: t for k, t in every if t.images == "digits" or cifar_folder().is_dir()}

    @property
    def size(self) -> str:
        parts = [
            f"{name}: {', '.join(f'{n:,}' for n in task.n_train)} training images, "
            f"{task.n_splits} split{'s' * (task.n_splits > 1)}, D = {task.n_features:,}"
            for name, task in self.tasks.items()
        ]
        found = "" if len(self.tasks) > 1 or self.scale == "small" else ", which are not here"
        return (
            f"{'; '.join(parts)}. The paper has 2,500, 5,000 and 10,000 cats and dogs of "
            f"CIFAR-10{found}, and D = 7,000."
        )

    def measures(self) -> list[Measure]:
        found = []
        for name, task in self.tasks.items():
            shared = {
                "images": name,
                "n_train": task.n_train,
                "n_splits": task.n_splits,
                "n_features": task.n_features,
            }
            choosing = {
                "choose_features": task.choose_features,
                "n_choose": task.n_choose,
                "multipliers": task.multipliers,
            }
            methods = {"method candidates": list(describe_all(task.methods).items())}
            label = "{images}, {method}"
            found.append(Measure("", self._double_basis, label, methods, {**shared, **choosing}))
            if task.kl_splits:
                params = {"method": "KL", "kl_splits": task.kl_splits, "spread": True}
                found.append(Measure("", self._by_gram, label, {}, {**shared, **params}))
        return found

    # ------------------------------------------------------------------ what is measured

    def _over_splits(
        self,
        p: Params,
        n_splits: int,
        one: Callable[[Labelled, Labelled], dict[str, Any]],
        progress: Callback,
    ) -> dict[str, Any]:
        """Measure accuracies and choices of each split, and medians of seconds."""
        found = []
        for split in range(n_splits):
            train, test = self._split(self.tasks[p["images"]], split)
            found.append(one(train, test))
            progress(split + 1, n_splits)
        return {
            "accuracies": [each["accuracies"] for each in found],
            "seconds": np.median([each["seconds"] for each in found], axis=0),
            "choices": [each["choice"] for each in found],
            "n_test": len(test[1]),
        }

    def _split(self, task: Task, split: int) -> tuple[Labelled, Labelled]:
        """Training images in random order, and test images; only the digits' depend on the seed."""
        seed, folder = 100 * self.seed + split, str(cifar_folder())
        digits = task.images == "digits"
        train, test = (
            draw_bags(Digits(split=s, seed=seed) if digits else CIFAR10(folder=folder, split=s))
            for s in ("train", "test")
        )
        order = np.random.default_rng(seed).permutation(len(train[1]))
        return (train[0][order], train[1][order]), test

    def _double_basis(self, p: Params, progress: Callback) -> dict[str, Any]:
        """Embedding and σ are chosen with ``n_choose`` training images and fewer features."""
        task, learner = self.tasks[p["images"]], Learner(DoubleBasisClassifier, self.seed)

        def one(train: Labelled, test: Labelled) -> dict[str, Any]:
            few = train[0][: task.n_choose], train[1][: task.n_choose]
            candidates = task.methods[p["method"]]
            choice = learner.choose(candidates, task.multipliers, few, task.choose_features)
            accuracies, seconds = [], []
            for n in task.n_train:
                begun = time.perf_counter()
                model = learner.fit_choice(choice, (train[0][:n], train[1][:n]), task.n_features)
                predicted = model.predict(test[0])
                seconds.append(time.perf_counter() - begun)
                accuracies.append(float((predicted == test[1]).mean()))
            return {"accuracies": accuracies, "seconds": seconds, "choice": choice.values}

        return self._over_splits(p, task.n_splits, one, progress)

    def _by_gram(self, p: Params, progress: Callback) -> dict[str, Any]:
        """Learn by KL, starting from the smallest number of training images.

        The estimate is for continuous densities. Neighbours at distance zero, such as pixels of two
        images, tell it nothing, so points are spread over their pixels and grey levels.
        """
        task = self.tasks[p["images"]]
        n = task.n_train[0]

        def one(train: Labelled, test: Labelled) -> dict[str, Any]:
            bags, queries = spread(train[0], 0), spread(test[0], 1)
            classes, codes = np.unique(train[1][:n], return_inverse=True)
            begun = time.perf_counter()
            scores, choice = GramPeer().predict(bags[:n], np.eye(len(classes))[codes], queries)
            seconds = time.perf_counter() - begun
            accuracy = float((classes[scores.argmax(axis=1)] == test[1]).mean())
            return {"accuracies": [accuracy], "seconds": [seconds], "choice": choice}

        return self._over_splits(p, task.kl_splits, one, progress)

    # ------------------------------------------------------------------ tables and pictures

    def tables(self, results: Sequence[Result]) -> list[Table]:
        """Make a table of accuracies and times over training images per task."""
        return [
            _table(select(results, images=name), name, task.n_train)
            for name, task in self.tasks.items()
        ]

    def draw(self, results: Sequence[Result]) -> None:
        for name, task in self.tasks.items():
            self._draw_task(select(results, images=name), name, task.n_train)

    def _draw_task(self, results: Sequence[Result], name: str, n_train: Sequence[int]) -> None:
        """Draw 001, Figure 4: the error rate over training images, and over time."""
        over_images, over_time = [], []
        for r in results:
            method = r.params["method"]
            color, marker = STYLES[method]
            errors = 100 * (1 - np.array(r.values["accuracies"]))
            bars = errors.std(axis=0, ddof=1) if len(errors) > 1 else None
            at, mean, style = n_train[: errors.shape[1]], errors.mean(axis=0), f"{marker}-"
            over_images.append(Curve(at, mean, method, color, style, bars))
            over_time.append(Curve(r.values["seconds"], mean, method, color, style))
        n = max(r.params["n_splits"] for r in results)
        text = f": means of {n} splits; bars: one standard deviation" if n > 1 else ""
        title = f"{name.capitalize()} as bags of pixels (x, y, v){text}"
        with self.picture(f"{name}.png", title, 2, 12.0, 5.0, sharey=True) as (_, [left, right]):
            lines(left, over_images, "training images", "error rate on test images, %", log="y")
            lines(right, over_time, "seconds for fit and all predictions", "", log="xy")
            plain_log(left.yaxis)
            plain_log(right.xaxis)


def spread(bags: Bags, seed: int) -> Bags:
    """Return the digits, with each point uniform in the cell of which it was the centre."""
    cells = np.array([1 / SIDE, 1 / SIDE, 1 / MAX_INTENSITY])
    moved = np.random.default_rng(seed).uniform(-0.5, 0.5, bags.points.shape) * cells
    return Bags.trusted((bags.points + moved).astype(np.float32), bags.offsets)


def cifar_folder() -> Path:
    """Return the folder in which the binary version of CIFAR-10 is expected.

    It is in scikit-learn's data folder, which the environment variable SCIKIT_LEARN_DATA sets.
    """
    home = os.environ.get("SCIKIT_LEARN_DATA", "~/scikit_learn_data")
    return Path(home).expanduser() / CIFAR_FOLDER


def _table(results: Sequence[Result], name: str, n_train: Sequence[int]) -> Table:
    found = {r.params["method"]: np.array(r.values["accuracies"]) for r in results}
    rows: list[list[Any]] = []
    for r in results:
        shares = found[r.params["method"]]
        blank = [None] * (len(n_train) - shares.shape[1])
        deviation = float(shares[:, -1].std(ddof=1)) if len(shares) > 1 else None
        means = shares.mean(axis=0).tolist()
        rows.append([r.params["method"], *means, *blank, deviation, *r.values["seconds"], *blank])
    columns = ["", *(f"accuracy, {n:,}" for n in n_train), "standard deviation at the last", *(
        f"s, {n:,}" for n in n_train)]  # fmt: skip
    n_splits, n_test = max(len(shares) for shares in found.values()), results[0].values["n_test"]
    last = {method: shares[:, -1] for method, shares in found.items() if method != "KL"}
    best = max(HDD, key=lambda method: last[method].mean())
    claims = [("TV", ">", "JS"), (best, "≥", "Hist JS")]
    claims += [(one, ">", other) for one in (best, "Hist JS") for other in ("L2", "MMD")]
    notes = remarks(
        "images", "accuracies", splits=f"{n_splits} split{'s' * (n_splits > 1)}", n_test=n_test,
        error=(0.97 * 0.03 / n_test) ** 0.5, largest=n_train[-1], best=best,
        accuracy=last[best].mean(), picked=PICKED, verdict=order_verdict(last, claims, 4),
        leads=", ".join(f"{other} {lead_text(last[best], last[other], 4)}" for other in OTHERS),
        meaning=MEANING, digits=name == "digits", chosen="; ".join(map(_choice, results)),
    )  # fmt: skip
    title = f"{name}: accuracy and time over the number of training images"
    return Table(title, columns, rows, notes)


def _choice(result: Result) -> str:
    choice = result.values["choices"][0]
    params = choice.get("embedding", {}).items()
    shown = "".join(f"{k}={v}, " for k, v in params if k not in ("embedding", "distance"))
    return f"{result.params['method']} {shown}σ {choice['multiplier']:g}"
