"""Draws ``bag_to_number.svg``, the picture of the README, from a fitted model.

Run ``.venv/bin/python docs/pictures/bag_to_number.py`` in the repository.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from bagbasis import DoubleBasisRegressor, ProjectionEmbedding

COLOURS = ("#1f6feb", "#d1495b")
GREY = "#57606a"
N, N_FITTED, PER_DIM, REACH = 1000, 800, 8, 8.0


def draw(path: Path) -> None:
    """Fit a model to bags whose label is their spread, and draw two bags that it has not seen."""
    rng = np.random.default_rng(0)
    spread = rng.uniform(0.5, 3, N)
    bags = [rng.normal(0, s, (rng.integers(50, 200), 2)) for s in spread]
    embedding = ProjectionEmbedding(n_per_dim=PER_DIM, box=[(-REACH, REACH)] * 2)
    model = DoubleBasisRegressor(embedding).fit(bags[:N_FITTED], spread[:N_FITTED])
    unseen = np.arange(N_FITTED, N)
    predicted = np.asarray(model.predict([bags[i] for i in unseen]))
    shown = [int(unseen[np.abs(spread[unseen] - s).argmin()]) for s in (0.8, 2.6)]
    coefficients = embedding.fit_transform([bags[i] for i in shown])

    figure = Figure(figsize=(9, 3.6))
    grid = figure.add_gridspec(
        2, 3, width_ratios=[1, 1, 2.1], left=0.06, right=0.98, bottom=0.14, top=0.9, wspace=0.42
    )
    for row, (i, colour) in enumerate(zip(shown, COLOURS, strict=True)):
        points = figure.add_subplot(grid[row, 0], aspect="equal")
        points.scatter(*bags[i].T, s=3, color=colour)
        points.set(xlim=(-REACH, REACH), ylim=(-REACH, REACH), xticks=[], yticks=[])
        points.set_ylabel(f"bag of {len(bags[i])}", color=colour)
        image = figure.add_subplot(grid[row, 1])
        most = np.abs(coefficients).max()
        values = coefficients[row].reshape(PER_DIM, PER_DIM)
        image.imshow(values, cmap="RdBu", vmin=-most, vmax=most)
        image.set(xticks=[], yticks=[])
        if row == 0:
            points.set_title("points of a bag")
            image.set_title(f"{PER_DIM * PER_DIM} coefficients")
    number = figure.add_subplot(grid[:, 2])
    number.plot([0.4, 3.1], [0.4, 3.1], color=GREY, linewidth=0.8)
    number.scatter(spread[unseen], predicted, s=6, color=GREY, alpha=0.5)
    for i, colour in zip(shown, COLOURS, strict=True):
        number.scatter(spread[i], predicted[i - N_FITTED], s=60, color=colour, zorder=3)
    number.set(
        xlabel="true spread",
        ylabel="predicted spread",
        title="the number, for bags not seen before",
    )
    number.set(xlim=(0.4, 3.1), ylim=(0.4, 3.1), xticks=[1, 2, 3], yticks=[1, 2, 3])
    for x in (0.275, 0.51):
        figure.text(x, 0.52, "→", fontsize=20, color=GREY, ha="center", va="center")
    with mpl.rc_context({"svg.hashsalt": "bagbasis"}):
        figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    draw(Path(__file__).with_name("bag_to_number.svg"))
