"""`ImageClasses`: images as bags of pixels (x, y, v), classified under several geometries.

001, §5.3 and Figure 4, on the digits bundled with scikit-learn; at scale "paper" on the cats and
dogs of CIFAR-10 too, as there, for those who have its files in scikit-learn's data folder.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagbasis import Bags, DoubleBasisClassifier
from bagbasis.bags.bags import concatenate
from bagbasis.datasets import Dataset, Digits
from bagbasis.datasets.digits import MAX_INTENSITY, SIDE

from ..terminal import Callback
from .data.cifar10 import CIFAR10
from .experiment import Experiment, Point, Result, Table
from .gram_peer import GramPeer
from .images_report import draw_images, image_table
from .images_settings import CIFAR_FOLDER, SETTINGS, Task
from .methods import choose, described_all, fit_chosen

Labelled = tuple[Bags, NDArray[np.int64]]


class ImageClasses(Experiment[tuple[Task, ...]]):
    """See the module; a point is a method on one kind of images, over all splits."""

    name = "images"
    title = "Classifying images by the distribution of their pixels"
    source = "001, §5.3"
    scales = SETTINGS

    def __init__(self, scale: str, seed: int, out_dir: Path) -> None:
        super().__init__(scale, seed, out_dir)
        here = [t for t in self.settings if t.images == "digits" or cifar_folder().is_dir()]
        self.tasks = {task.name: task for task in here}

    @property
    def size(self) -> str:
        parts = [
            f"{task.name}: {', '.join(f'{n:,}' for n in task.n_train)} training images, "
            f"{task.n_splits} split{'s' * (task.n_splits > 1)}, D = {task.n_features:,}"
            for task in self.tasks.values()
        ]
        found = "" if len(self.tasks) > 1 or self.scale == "small" else ", which are not here"
        return (
            f"{'; '.join(parts)}. The paper has 2,500, 5,000 and 10,000 cats and dogs of "
            f"CIFAR-10{found}, and D = 7,000."
        )

    def points(self) -> list[Point]:
        points = []
        for task in self.tasks.values():
            shared = {
                "images": task.name,
                "n_train": task.n_train,
                "n_splits": task.n_splits,
                "n_features": task.n_features,
            }
            choosing = {
                "choose_features": task.choose_features,
                "n_choose": task.n_choose,
                "multipliers": task.multipliers,
            }
            for name, candidates in described_all(task.methods).items():
                params = {"method": name, "candidates": candidates, **choosing}
                points.append(Point(f"{task.name}, {name}", {**shared, **params}))
            if task.kl_splits:
                params = {"method": "KL", "kl_splits": task.kl_splits, "spread": True}
                points.append(Point(f"{task.name}, KL", {**shared, **params}))
        return points

    def measure(self, point: Point, progress: Callback) -> dict[str, Any]:
        task, method = self.tasks[point.params["images"]], point.params["method"]
        n_splits = task.kl_splits if method == "KL" else task.n_splits
        found: list[dict[str, Any]] = []
        for split in range(n_splits):
            train, test = self._split(task, split)
            if method == "KL":
                found.append(_by_gram(task, train, test))
            else:
                found.append(self._double_basis(task, method, train, test))
            progress(split + 1, n_splits)
        return {
            "accuracies": [each["accuracies"] for each in found],
            "seconds": np.median([each["seconds"] for each in found], axis=0),
            "choices": [each["choice"] for each in found],
            "n_test": len(test[1]),
        }

    def tables(self, results: Sequence[Result]) -> list[Table]:
        return [image_table(results, name, task.n_train) for name, task in self.tasks.items()]

    def draw(self, results: Sequence[Result]) -> list[Path]:
        return [
            draw_images(self.out_dir / f"{name}.png", results, name, task.n_train)
            for name, task in self.tasks.items()
        ]

    def _split(self, task: Task, split: int) -> tuple[Labelled, Labelled]:
        """Training images in random order, and test images."""
        seed = 100 * self.seed + split
        train, test = (images(task.images, part, seed) for part in ("train", "test"))
        order = np.random.default_rng(seed).permutation(len(train[1]))
        return (train[0][order], train[1][order]), test

    def _double_basis(
        self, task: Task, method: str, train: Labelled, test: Labelled
    ) -> dict[str, Any]:
        """Embedding and σ are chosen with ``n_choose`` training images and fewer features."""
        few = train[0][: task.n_choose], train[1][: task.n_choose]
        choice = choose(
            DoubleBasisClassifier,
            task.methods[method],
            task.multipliers,
            few,
            task.choose_features,
            self.seed,
        )
        accuracies, seconds = [], []
        for n in task.n_train:
            begun = time.perf_counter()
            training = train[0][:n], train[1][:n]
            model = fit_chosen(DoubleBasisClassifier, choice, training, task.n_features, self.seed)
            predicted = model.predict(test[0])
            seconds.append(time.perf_counter() - begun)
            accuracies.append(float((predicted == test[1]).mean()))
        return {"accuracies": accuracies, "seconds": seconds, "choice": choice.values}


def _by_gram(task: Task, train: Labelled, test: Labelled) -> dict[str, Any]:
    """KL, for the smallest number of training images.

    Its estimate is for continuous densities: neighbours at distance zero, as pixels of two images
    have, say nothing. So points are spread over their pixels and grey levels.
    """
    n = task.n_train[0]
    train, test = (_spread(part, seed) for seed, part in enumerate((train, test)))
    classes, codes = np.unique(train[1][:n], return_inverse=True)
    begun = time.perf_counter()
    one_hot = np.eye(len(classes))[codes]
    scores, choice = GramPeer().predict(train[0][:n], one_hot, test[0])
    seconds = time.perf_counter() - begun
    accuracy = float((classes[scores.argmax(axis=1)] == test[1]).mean())
    return {"accuracies": [accuracy], "seconds": [seconds], "choice": choice}


def _spread(labelled: Labelled, seed: int) -> Labelled:
    """The digits with each point uniform in the cell that its coordinates are the centre of."""
    bags, labels = labelled
    cells = np.array([1 / SIDE, 1 / SIDE, 1 / MAX_INTENSITY])
    moved = np.random.default_rng(seed).uniform(-0.5, 0.5, bags.points.shape) * cells
    return Bags.trusted((bags.points + moved).astype(np.float32), bags.offsets), labels


@lru_cache(maxsize=2)
def images(kind: str, split: str, seed: int) -> Labelled:
    """Bags and labels of the training or test images; only the digits' depend on the seed."""
    dataset = Digits(split=split, seed=seed) if kind == "digits" else _cats_and_dogs(split)
    blocks = list(_blocks(dataset))
    labels = np.concatenate([targets[:, 0] for _, targets in blocks]).astype(np.int64)
    return concatenate([bags for bags, _ in blocks]), labels


def _blocks(dataset: Dataset) -> Iterator[Any]:
    assert dataset.n_bags is not None
    for i in range(-(-dataset.n_bags // dataset.block_bags)):
        yield dataset.block(i)


def _cats_and_dogs(split: str) -> CIFAR10:
    return CIFAR10(folder=str(cifar_folder()), split=split)


def cifar_folder() -> Path:
    """Where the binary version of CIFAR-10 is looked for: in scikit-learn's data folder, which the
    environment variable SCIKIT_LEARN_DATA sets."""
    home = os.environ.get("SCIKIT_LEARN_DATA", "~/scikit_learn_data")
    return Path(home).expanduser() / CIFAR_FOLDER
