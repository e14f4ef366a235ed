"""``make docs`` asks the index that Sphinx has built a newcomer's questions, in people's own words.

The page that answers a question has to be among the first three pages, in the order in which a
browser shows them: `results` does what Sphinx' ``searchtools.js`` does with the same index.
"""

from __future__ import annotations

import json
import math
import re
import sys
from pathlib import Path

from sphinx.search.en import SearchEnglish

TITLE, PARTIAL_TITLE, TERM, PARTIAL_TERM = 15, 7, 5, 2  # the scores of searchtools.js
ENTRY, OBJECT, PART_OF_OBJECT = 100, 11, 6
OF_OBJECT = {0: 15, 1: 5, 2: -5}  # by the priority of an object
LANGUAGE = SearchEnglish({})


QUESTIONS_OF = {  # by the page that answers them
    "your-data": [
        "your data parquet csv", "flow cytometry fcs", "slides patches", "time series",
        "time series classification", "dataframe",
    ],
    "embeddings": ["which embedding"],
    "hypothesis-tests": ["hypothesis two sample test", "two sample test", "mmd test", "p value"],
    "drift": ["drift detector", "data drift", "concept drift"],
    "clusters": ["slurm cluster", "parallel", "dask", "spark", "kubernetes"],
    "retraining": ["retrain schedule", "mlflow"],
    "single-cell": ["single cells patients"],
    "by-task": ["lazy or eager"],
    "stores": ["object stores s3", "aws s3", "large dataset", "out of core"],
    "intervals": [
        "confidence interval", "uncertainty", "standard deviation of a prediction",
        "prediction interval", "conformal prediction", "anomaly detection", "outlier detection",
    ],
    "how-to/tune": ["hyperparameter tuning", "optuna", "grid search"],
    "evaluation": ["overfitting", "data leakage"],
    "how-to/groups": ["cross-validation groups"],
    "penalty": ["regularization"],
    "how-to/imbalanced": [
        "imbalanced classes", "calibrated probabilities", "class weights", "confusion matrix",
        "roc auc",
    ],
    "how-to/interpret": [
        "feature importance", "explain prediction", "permutation importance", "shap values",
    ],
    "how-to/missing": ["missing values", "categorical features", "one-hot encoding"],
    "how-to/few-bags": ["small sample size", "learning curve"],
    "how-to/groupby-agg": ["pandas groupby agg", "random forest"],
    "how-to/memory": [
        "out of memory", "logging verbose", "n_jobs", "progress bar", "troubleshooting",
    ],
    "how-to/serve": ["serve http rest", "save load model", "export onnx", "pickle"],
    "how-to/upgrade": ["upgrade"],
    "boxes": ["outliers"],
    "determinism": ["random state", "random seed", "reproducible"],
    "getting-started": ["GPU", "conda", "install pip"],
    "performance": ["benchmark", "speed"],
    "concepts": [
        "distribution regression", "multiple instance learning", "deep sets", "mean pooling",
        "point clouds",
    ],
    "choose-embedding": ["kernel mean embedding", "wasserstein distance"],
    "guide": [
        "early stopping", "multi-output regression", "sample weight", "recurrent network",
        "online learning",
    ],
    "policy": ["windows"],
    "contributing": ["license", "cite", "report bug", "custom embedding", "plugin"],
    "changes": ["changelog"],
    "plotting": ["plot results"],
    "deploying": ["docker"],
}  # fmt: skip
QUESTIONS = [(text, page) for page, texts in QUESTIONS_OF.items() for text in texts]
FIRST = 3  # how many pages people look at


def results(index, question):
    """Return the pages that a browser shows for a question, in order, each once."""
    values = [*_titles(index, question), *_entries(index, question)]
    values += [*_objects(index, question), *_texts(index, question)]
    values.sort(key=lambda result: (-result[0], result[1].lower()))
    return list(dict.fromkeys(index["docnames"][document] for _, _, document in values))


def _share(question, text, score):
    """A score for a text with the question inside; None if the text is more than twice as long."""
    text = text.lower().strip()
    if question not in text or len(question) < len(text) / 2:
        return None
    return math.floor(score * len(question) / len(text) + 0.5)


def _titles(index, question):
    for title, places in index["alltitles"].items():
        score = _share(question.lower(), title, TITLE)
        for document, _ in places if score is not None else ():
            name = index["titles"][document]
            shown = title if name == title else f"{name} > {title}"
            yield score + (name == title), shown, document


def _entries(index, question):
    for entry, places in index["indexentries"].items():
        score = _share(question.lower(), entry, ENTRY)
        for document, _, is_main in places if score is not None else ():
            if is_main:  # the others come last
                yield score, index["titles"][document], document


def _objects(index, question):
    words = {word for word in re.split(r"\W+", question.lower()) if word}
    for prefix, members in index["objects"].items():
        for document, kind, priority, _, name in members:
            full = f"{prefix}.{name}".strip(".")
            about = " ".join([prefix, name, index["objnames"][str(kind)][2]])
            about = f"{about} {index['titles'][document]}".lower()
            last = full.lower().rpartition(".")[2]
            for word in words:
                if word in full.lower() and all(other in about for other in words - {word}):
                    is_whole = word in (full.lower(), last)
                    score = OBJECT if is_whole else PART_OF_OBJECT if word in last else 0
                    yield score + OF_OBJECT.get(priority, 0), full, document


def _texts(index, question):
    words = [word for word in re.split(r"\W+", question) if word]
    stems = {LANGUAGE.stem(word.lower()) for word in words if LANGUAGE.word_filter(word.lower())}
    scores = {}
    for stem in stems:
        for table, whole, part in (
            ("terms", TERM, PARTIAL_TERM),
            ("titleterms", TITLE, PARTIAL_TITLE),
        ):
            partly = stem not in index[table] and len(stem) > 2
            terms = [term for term in index[table] if stem in term] if partly else [stem]
            for term in terms:
                documents = index[table].get(term, [])
                for document in documents if isinstance(documents, list) else [documents]:
                    scores.setdefault(document, {})[stem] = part if partly else whole
    n_long = sum(len(stem) > 2 for stem in stems)
    for document, of_stems in scores.items():
        if len(of_stems) in (len(stems), n_long):
            yield max(of_stems.values()), index["titles"][document], document


def missed(index):
    """Return the questions whose page is not among the first, with what is there instead."""
    shown = {question: results(index, question)[:FIRST] for question, _ in QUESTIONS}
    return {
        question: shown[question] for question, page in QUESTIONS if page not in shown[question]
    }


if __name__ == "__main__":
    text = Path(sys.argv[1]).read_text()
    unanswered = missed(json.loads(text[len("Search.setIndex(") : text.rindex(")")]))
    lines = [f"{question}: {', '.join(pages)}" for question, pages in unanswered.items()]
    sys.exit("the search does not answer:\n" + "\n".join(lines) if lines else 0)
