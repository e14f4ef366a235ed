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
    ("docker", "deploying"),
    ("out of core", "stores"),
    ("recurrent network", "guide"),
    ("online learning", "guide"),
]
FIRST = 3  # how many pages people look at


def results(index, question):
    """Return the pages that a browser shows for a question, in order, each once."""
    found = [*_titles(index, question), *_entries(index, question)]
    found += [*_objects(index, question), *_texts(index, question)]
    found.sort(key=lambda result: (-result[0], result[1].lower()))
    return list(dict.fromkeys(index["docnames"][document] for _, _, document in found))


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
