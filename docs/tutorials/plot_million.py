"""
A million bags on a cluster
===========================

For people whose bags do not fit in memory, or on one machine. The points of a bag are drawn from a
mixture of Gaussians, and the label is the number of its components. The program can generate any
number of bags: a million on a cluster, two thousand for this page.
"""

# %%
# `connect("local")` starts worker processes on this machine. With a profile such as
# `configs/profiles/slurm.yaml` instead of `"local"`, the workers are SLURM jobs; the rest of the
# program stays the same. In a script, put everything except the imports below
# `if __name__ == "__main__":`; a notebook needs no such line. Workers write the bags, some thousand
# at a time. If generation is cut off, the same call continues after the bags that are stored.

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from bagbasis import (
    DoubleBasisRegressor,
    ProjectionEmbedding,
    RandomFourierFeatures,
    connect,
    evaluate,
)
from bagbasis.datasets import generate, make_dataset
from bagbasis.models import read_predictions, write_predictions

N_BAGS = 2_000  # or 1_000_000
N_FEATURES = 256  # or 2_048

folder = Path(tempfile.mkdtemp())
cluster = connect("local", n_workers=2)
data = make_dataset("gmm_components", seed=1)
store = generate(data, folder / "bags.zarr", n_bags=N_BAGS)
print(f"{store.n_bags:,} bags with {store.n_points:,} points in R^{store.n_dims}")

# %%
# A fit is one pass over the bags. Each worker sums the features of its bags, and sends only the
# sums. Their size depends on the number of features, not on the number of bags. `checkpoints=`
# stores finished sums, so that a fit that was killed resumes where it stopped. About a tenth of the
# bags is held out, to estimate the error.

model = DoubleBasisRegressor(ProjectionEmbedding(), RandomFourierFeatures(n_features=N_FEATURES))
model.fit(store, holdout=0.1, checkpoints=folder / "checkpoints")
print(evaluate(model, store, subset="holdout"))

# %%
# Predictions of a million bags are a table, too. Workers write its parts: the ids of the bags, the
# predictions and, for a model with a holdout, intervals that contain 90 % of the true values.

write_predictions(
    model, store, folder / "predictions.parquet", columns=["lower", "upper"], coverage=0.9
)
table = read_predictions(folder / "predictions.parquet")
truth = np.ravel(store.targets())
low, high = table["lower"].to_numpy(), table["upper"].to_numpy()
print(table.head(3).to_string(index=False))
print(f"{np.mean((low <= truth) & (truth <= high)):.0%} of the intervals hold the truth")

figure, axes = plt.subplots(figsize=(5, 3))
counts = np.unique(truth)
predicted = table.drop(columns=["id", "lower", "upper"]).to_numpy()[:, 0]
axes.boxplot([predicted[truth == n] for n in counts], positions=counts, showfliers=False)
axes.set(xlabel="components", ylabel="predicted")
figure.tight_layout()

# %%
# How the work is divided depends only on the data and the features, and sums are added in a fixed
# order. So this process computes the same numbers as two workers, or as a hundred of which some
# fail:

cluster.close()
alone = DoubleBasisRegressor(ProjectionEmbedding(), RandomFourierFeatures(n_features=N_FEATURES))
alone.fit(store, holdout=0.1)
print("the same bits:", np.array_equal(alone.predict(store[:50]), model.predict(store[:50])))

# %%
# A million bags
# --------------
#
# With a million bags of 200 points, 2,048 features and two workers of one core each, generation
# took 14 s, the fit 28 s and predictions 6 s. `python -m tests.benchmarks.million`, in a checkout,
# measures them on your machine; :doc:`/performance` has more. On a cluster the jobs are
#
# .. code-block:: shell
#
#    bags generate --set dataset=gmm_components --set n_bags=1000000 --set url=/shared/bags.zarr \
#        --cluster slurm
#    bags submit fit fit.yaml --set data_url=/shared/bags.zarr --cluster slurm
#    bags attach ID  # shows progress; bags runs, bags cancel
#
# The workers must be able to read the URL: use a shared filesystem or an object store.
# :doc:`/clusters` describes profiles.
