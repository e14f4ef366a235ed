"""Draws ``same_mean.svg``: three bags with one mean, and the coefficients that tell them apart.

Run ``.venv/bin/python docs/pictures/same_mean.py`` in the repository.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from bagbasis import ProjectionEmbedding

COLOUR, GREY = "#1f6feb", "#57606a"
N, PER_DIM, REACH = 300, 8, 4.0


def _bags() -> dict[str, NDArray[np.float64]]:
    """Return a cloud, a ring and two clusters, each moved so that its mean is exactly zero."""
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, 2 * np.pi, N)
    ring = np.column_stack([np.cos(angle), np.sin(angle)]) * rng.normal(2, 0.2, (N, 1))
    clusters = rng.normal(0, 0.5, (N, 2)) + np.where(np.arange(N) % 2, 1.5, -1.5)[:, None]
    bags = {"a cloud": rng.normal(0, 1.2, (N, 2)), "a ring": ring, "two clusters": clusters}
    return {name: points - points.mean(axis=0) for name, points in bags.items()}


def draw(path: Path) -> None:
    """Draw the points of each bag above the coefficients of its density."""
    bags = _bags()
    embedding = ProjectionEmbedding(n_per_dim=PER_DIM, box=[(-REACH, REACH)] * 2)
    coefficients = np.array(embedding.fit_transform(list(bags.values())))
    coefficients[:, 0] = 0  # of the constant function, the same for all densities
    most = np.abs(coefficients).max()
    figure = Figure(figsize=(9, 5.4), layout="constrained")
    axes = figure.subplots(2, len(bags))
    for column, (name, points) in enumerate(bags.items()):
        above, below = axes[:, column]
        above.scatter(*points.T, s=4, color=COLOUR)
        above.plot(0, 0, "+", markersize=16, markeredgewidth=3, color="black")
        above.set(xlim=(-REACH, REACH), ylim=(-REACH, REACH), xticks=[], yticks=[], aspect="equal")
        above.set_title(f"{name}, mean (0, 0)")
        values = coefficients[column].reshape(PER_DIM, PER_DIM)
        below.imshow(values, cmap="RdBu", vmin=-most, vmax=most)
        below.set(xticks=[], yticks=[])
        below.set_title(f"its {PER_DIM * PER_DIM} coefficients", color=GREY)
    with mpl.rc_context({"svg.hashsalt": "bagbasis"}):
        figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    draw(Path(__file__).with_name("same_mean.svg"))
