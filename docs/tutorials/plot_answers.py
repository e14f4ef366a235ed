"""
From a table to a served model, in twenty cells
===============================================

For people who know pandas and scikit-learn, and not yet bagbasis. Afterwards you have fitted,
judged, explained, tested and saved a model once. Each cell asks one question, and the answer is
below it. The rows are simulated: 200 patients with 20 to 60 measurements each. The score of a
patient depends on how much the measurements vary.
"""

# %%
# All you need is a table with one row per measurement.

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from bagbasis import (
    DoubleBasisClassifier,
    DoubleBasisRegressor,
    cross_val_score,
    evaluate,
    load_model,
)
from bagbasis.hypotheses import two_sample_test
from bagbasis.models import explain, permutation_importance
from bagbasis.operations import DriftDetector, Registry
from bagbasis.plotting import plot_choice

rng = np.random.default_rng(0)
score = rng.uniform(0.5, 2.0, 200).round(2)
rows = pd.concat(
    pd.DataFrame(
        {
            "patient": f"p{i:03d}",
            "pulse": 70 + 10 * rng.normal(rng.normal(), spread, n),
            "glucose": 5 + rng.gamma(2.0, 1.0, n),
        }
    )
    for i, (spread, n) in enumerate(zip(score, rng.integers(20, 60, 200), strict=True))
)
rows.head(3).round(1)

# %%
# The rows of one patient are a bag. Each patient has one label, the score.

bags = rows.groupby("patient")
y = pd.Series(score, index=[f"p{i:03d}" for i in range(200)], name="score")
y.describe().round(2)

# %%
# **Fit.** A quarter of the patients is held out. The embedding and the penalty are chosen by
# cross-validation. In the summary, an error of 1 would be that of always predicting the mean.

model = DoubleBasisRegressor().fit(bags, y, holdout=0.25)
print(model.summary())

# %%
# **Look.** Which candidates were compared? The best ones differ by less than a standard error. The
# errors of this table are the squares of those of the summary.

model.choice_[["name", "width", "error", "standard_error"]].head(5).round(3)

# %%
# The same as a plot, with the standard errors as lines.

plot_choice(model)

# %%
# **Judge.** The model knows which patients were held out, and `evaluate` uses these alone.

errors = evaluate(model, bags, y)
print(errors.verdict())

# %%
# Predicted against true scores. A perfect model has all points on the diagonal.

errors.plot()
# sphinx_gallery_thumbnail_number = 2

# %%
# Without a holdout, estimate the error by cross-validation. ``scoring`` takes scikit-learn's names.

moments = DoubleBasisRegressor("moments")
scores = cross_val_score(moments, bags, y, scoring="neg_root_mean_squared_error")
print(f"RMSE {-scores.mean():.3f} ± {scores.std() / 5**0.5:.3f}")

# %%
# How certain is one prediction? Intervals are calibrated on the patients that were held out. On
# average, 80 % of new patients have their score within their interval.

few = rows[rows.patient < "p003"].groupby("patient")
lower, upper = model.predict_interval(few, coverage=0.8)
pd.DataFrame({"lower": lower, "predicted": model.predict(few), "upper": upper}).round(2)

# %%
# Which coordinate matters? Each one is permuted between patients in turn. The score depends on
# the pulse alone, and this is what the plot shows.

importance = permutation_importance(model, bags, y, n_repeats=3)
importance.plot()

# %%
# **Explain** one prediction: which measurements move it?

patient = rows.loc[rows.patient == "p001", ["pulse", "glucose"]]
explanation = explain(model, patient.to_numpy())
print(explanation)

# %%
# The same as a plot: which points raise the prediction, and which lower it.

explanation.plot()

# %%
# **Classes** are learned in the same way.

kind = pd.Series(np.where(score > 1.25, "high", "low"), index=y.index, name="kind")
classifier = DoubleBasisClassifier("moments").fit(bags, kind, holdout=0.25)
of_classes = evaluate(classifier, bags, kind)
print(of_classes.verdict())

# %%
# Prediction sets contain the true class of 97 % of new patients. A set of two classes means that
# the model is not certain.

sets = classifier.predict_set(bags, coverage=0.97)
pd.Series(sets.sum(axis=1)).value_counts().rename("patients with so many classes")

# %%
# **Test.** Do patients with a high score differ from the others?

is_high = rows.patient.map(kind) == "high"
high, low = (rows[part].groupby("patient") for part in (is_high, ~is_high))
result = two_sample_test(high, low, unit="bag", n_permutations=199)
print(result.verdict())

# %%
# The statistic of the test, and its distribution if there were no difference.

result.plot()

# %%
# **Drift.** Are later patients like the first hundred?

is_first = rows.patient < "p100"
first, later = (rows[part].groupby("patient") for part in (is_first, ~is_first))
detector = DriftDetector(n_permutations=199).fit(first)
print(detector.predict(later))

# %%
# **Save** the model, and an HTML report about it.

folder = Path(tempfile.mkdtemp())
model.save(folder / "model.zarr")
model.report(folder / "report.html", bags, y)
load_model(folder / "model.zarr").predict(few).round(2)

# %%
# A registry stores models and knows which one is the champion, the model that is served.

registry = Registry(folder / "models")
registry.promote(registry.register(model))
registry

# %%
# **Serve** the champion: ``bags serve models`` answers requests with it, and ``bags retrain``
# follows a growing store. This is the model that answers.

registry.load_current()
