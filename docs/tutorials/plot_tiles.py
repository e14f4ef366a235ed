"""
Tiles of a photograph
=====================

For people whose bags have neighbours that look alike: tiles of one picture, samples of one patient,
days of one week. Here a tile of a photograph is a bag. Its points are the colours of the pixels,
without their positions. The label is the height of the tile in the photograph. The picture of a
temple comes inside scikit-learn.
"""

# %%
# 13 rows and 20 columns of tiles. Five strips of four columns each will be kept together.

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_sample_images

from bagbasis import DoubleBasisRegressor, ProjectionEmbedding, cross_val_score
from bagbasis.ingest import ingest_images

side = 32
photo = load_sample_images().images[0]
n_rows, n_columns = photo.shape[0] // side, photo.shape[1] // side
photo = photo[: n_rows * side, : n_columns * side]
tiles = photo.reshape(n_rows, side, n_columns, side, 3).swapaxes(1, 2).reshape(-1, side, side, 3)
row, column = np.divmod(np.arange(len(tiles)), n_columns)
labels = {"height": 1 - (row + 0.5) / n_rows, "strip": column // 4}

store = ingest_images(tiles, Path(tempfile.mkdtemp()) / "tiles.zarr", targets=labels)
store

# %%
# With folds of random tiles, the model predicts tiles whose neighbours it knows. With folds of
# whole strips, it predicts a part of the picture that it has never seen, and this is the error that
# we want to know.

model = DoubleBasisRegressor(ProjectionEmbedding(n_per_dim=4))
for name, groups in {"random tiles": None, "whole strips": "strip"}.items():
    scores = cross_val_score(model, store, target="height", groups=groups)
    error = scores.std(ddof=1) / np.sqrt(len(scores))
    print(f"folds of {name}: R² {scores.mean():.2f} ± {error:.2f}")

# %%
# With random tiles, the neighbours had given away half of the answer. Where does the model err?
# Here every strip is predicted by a model that was fitted to the other four.

bags, height = store.read(), labels["height"]
predicted = np.empty(len(tiles))
for strip in range(5):
    out = labels["strip"] == strip
    model.fit([bags[i] for i in np.flatnonzero(~out)], height[~out])
    predicted[out] = model.predict([bags[i] for i in np.flatnonzero(out)])

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 3.8))
left.imshow(photo)
extent = (0, photo.shape[1], photo.shape[0], 0)
image = right.imshow(predicted.reshape(n_rows, n_columns), extent=extent, vmin=0, vmax=1)
figure.colorbar(image, ax=right, label="predicted height")
plt.show()

# %%
# The heights of sky, water and trees are right. Tiles of the temple, which resemble no tile of the
# other strips, get arbitrary heights, up to that of the sky.
#
# A fit can hold out strips in the same way, so that evaluation, intervals and reports describe
# tiles without neighbours: ``model.fit(store, target="height", holdout={"fraction": 0.2, "groups":
# "strip"})``. In a config: ``holdout: {fraction: 0.2, groups: strip}``.

model.fit(store, target="height", holdout={"fraction": 0.2, "groups": "strip"})
model.report_["n_bags_held_out"]
