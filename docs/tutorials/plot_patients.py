"""
Which patients are alike?
=========================

For people who compare patients by their single cells. A patient is a bag of cells, and a cell is a
point in an embedding such as ``X_pca``. Patients differ in how often each type of cell occurs, and
in the state of the cells. They are generated here, so that the truth is known.
``bagbasis.singlecell.BagbasisSamples`` reads real ones from an AnnData object.
"""

# %%
# Forty patients have 300 cells each, of six types in ten dimensions. Half of the patients are ill:
# one type is more frequent, and another one has moved.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import KernelPCA

from bagbasis import (
    Bags,
    DoubleBasisClassifier,
    MomentsEmbedding,
    PointTransformer,
    cross_val_score,
)
from bagbasis.hypotheses import two_sample_test
from bagbasis.singlecell import replicate_robustness, sample_distances

rng = np.random.default_rng(0)
types = rng.normal(0, 3, (6, 10))
ill = np.arange(40) % 2 == 1


def cells(is_ill):
    """Cells of one patient: types by their shares, each around its centre."""
    shares = rng.dirichlet([8, 8, 8, 8, 8, 16 if is_ill else 8])
    moved = types + np.where(is_ill, 0.5, 0) * (np.arange(6) == 2)[:, None]
    return moved[rng.choice(6, 300, p=shares)] + rng.normal(size=(300, 10))


patients = Bags.from_list([cells(patient) for patient in ill])
patients

# %%
# GloScope's distances, the symmetric Kullback-Leibler divergence by nearest neighbours, compare all
# pairs of patients. The time for mean maps grows only linearly with the number of cells.

distances = {method: sample_distances(patients, method) for method in ("knn", "mean_map")}

figure, axes = plt.subplots(1, 2, figsize=(8, 3.6), layout="constrained")
for axis, (method, matrix) in zip(axes, distances.items(), strict=True):
    places = KernelPCA(2, kernel="precomputed").fit_transform(-(matrix**2) / 2)
    for state, label in ((False, "well"), (True, "ill")):
        axis.scatter(*places[ill == state].T, s=18, label=label)
    axis.set_title(method)
axes[0].legend()
plt.show()

# %%
# Do the distances reflect patients, or chance? Split each patient into halves: the nearest other
# sample of a half should be its other half.

halves = Bags.from_list([part for bag in patients for part in (bag[::2], bag[1::2])])
names = np.repeat(np.arange(40), 2).tolist()
print(f"{replicate_robustness(sample_distances(halves, 'mean_map'), names):.2f}")

# %%
# Do the two groups differ? The sample size is the number of patients, not that of the 12,000 cells.

print(two_sample_test(patients[~ill], patients[ill]))

# %%
# How many patients that the fit has not seen are classified correctly?

embedding = PointTransformer(embedding=MomentsEmbedding())
model = DoubleBasisClassifier(embedding, random_features=False)
print(f"accuracy {cross_val_score(model, patients, ill.astype(int), cv=5).mean():.2f}")
