"""``make docs`` asks the index that Sphinx has built a newcomer's questions, in people's own words.

The page that answers a question has to be among the first three, by Sphinx's splitting into words,
its stems and its scores.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

from sphinx.search.en import SearchEnglish

TITLE, TERM = 15, 5  # title and term of Sphinx' searchtools.js
LANGUAGE = SearchEnglish({})


def stems(text):
    return [LANGUAGE.stem(word.lower()) for word in LANGUAGE.split(text)]


QUESTIONS = [
    ("your data parquet csv", "your-data"),
    ("flow cytometry fcs", "your-data"),
    ("slides patches", "your-data"),
    ("which embedding", "embeddings"),
    ("hypothesis two sample test", "hypothesis-tests"),
    ("drift detector", "drift"),
    ("slurm cluster", "clusters"),
    ("retrain schedule", "retraining"),
    ("single cells patients", "single-cell"),
    ("lazy or eager", "by-task"),
    ("object stores s3", "stores"),
    ("confidence interval", "intervals"),
    ("uncertainty", "intervals"),
    ("standard deviation of a prediction", "intervals"),
    ("hyperparameter tuning", "how-to/tune"),
    ("optuna", "how-to/tune"),
    ("grid search", "how-to/tune"),
    ("overfitting", "evaluation"),
    ("data leakage", "evaluation"),
    ("cross-validation groups", "how-to/groups"),
    ("regularization", "penalty"),
    ("imbalanced classes", "how-to/imbalanced"),
    ("calibrated probabilities", "how-to/imbalanced"),
    ("feature importance", "how-to/interpret"),
    ("explain prediction", "how-to/interpret"),
    ("missing values", "how-to/missing"),
    ("categorical features", "how-to/missing"),
    ("one-hot encoding", "how-to/missing"),
    ("small sample size", "how-to/few-bags"),
    ("pandas groupby agg", "how-to/groupby-agg"),
    ("random forest", "how-to/groupby-agg"),
    ("out of memory", "how-to/memory"),
    ("logging verbose", "how-to/memory"),
    ("serve http rest", "how-to/serve"),
    ("save load model", "how-to/serve"),
    ("upgrade", "how-to/upgrade"),
    ("outliers", "boxes"),
    ("random state", "determinism"),
    ("random seed", "determinism"),
    ("reproducible", "determinism"),
    ("GPU", "getting-started"),
    ("conda", "getting-started"),
    ("install pip", "getting-started"),
    ("benchmark", "performance"),
    ("speed", "performance"),
    ("distribution regression", "concepts"),
    ("multiple instance learning", "concepts"),
    ("deep sets", "concepts"),
    ("kernel mean embedding", "choose-embedding"),
    ("time series", "your-data"),
    ("time series classification", "your-data"),
    ("mean pooling", "concepts"),
    ("point clouds", "concepts"),
    ("permutation importance", "how-to/interpret"),
    ("shap values", "how-to/interpret"),
    ("early stopping", "guide"),
    ("multi-output regression", "guide"),
    ("sample weight", "guide"),
    ("class weights", "how-to/imbalanced"),
    ("confusion matrix", "how-to/imbalanced"),
    ("roc auc", "how-to/imbalanced"),
    ("learning curve", "how-to/few-bags"),
    ("prediction interval", "intervals"),
    ("conformal prediction", "intervals"),
    ("anomaly detection", "intervals"),
    ("outlier detection", "intervals"),
    ("two sample test", "hypothesis-tests"),
    ("mmd test", "hypothesis-tests"),
    ("p value", "hypothesis-tests"),
    ("data drift", "drift"),
    ("concept drift", "drift"),
    ("wasserstein distance", "choose-embedding"),
    ("parallel", "clusters"),
    ("dask", "clusters"),
    ("spark", "clusters"),
    ("kubernetes", "clusters"),
    ("aws s3", "stores"),
    ("large dataset", "stores"),
    ("dataframe", "your-data"),
    ("n_jobs", "how-to/memory"),
    ("progress bar", "how-to/memory"),
    ("troubleshooting", "how-to/memory"),
    ("export onnx", "how-to/serve"),
    ("pickle", "how-to/serve"),
    ("mlflow", "retraining"),
    ("windows", "policy"),
    ("license", "contributing"),
    ("cite", "contributing"),
    ("report bug", "contributing"),
    ("custom embedding", "contributing"),
    ("plugin", "contributing"),
    ("changelog", "changes"),
    ("plot results", "plotting"),
]
FIRST = 3  # how many answers people look at


def ranks_in_the_built_index(index):
    """Return the rank of each question's page in an index that Sphinx has built, of all pages."""
    found = {}
    for question, page in QUESTIONS:
        scores = Counter()
        words = [word for word in stems(question) if LANGUAGE.word_filter(word)]
        for name, score in (("terms", TERM), ("titleterms", TITLE)):
            for word in words:
                documents = index[name].get(word, [])
                documents = documents if isinstance(documents, list) else [documents]
                scores.update({(document, word): score for document in documents})
        totals = Counter()
        for document in {document for document, _ in scores}:
            if all((document, word) in scores for word in words):
                totals[index["docnames"][document]] = sum(scores[document, w] for w in words)
        better = sum(total > totals[page] for total in totals.values())
        found[question] = better + 1 if page in totals else None
    return found


if __name__ == "__main__":
    text = Path(sys.argv[1]).read_text()
    ranks = ranks_in_the_built_index(json.loads(text[len("Search.setIndex(") : text.rindex(")")]))
    missed = {question: rank for question, rank in ranks.items() if rank is None or rank > FIRST}
    sys.exit(f"the search does not answer: {missed}" if missed else 0)
