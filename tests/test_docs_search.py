"""Questions of a newcomer, in people's own words, and the pages that answer them.

Each page has to be among the first three. Its title counts most, then its headings, then its words:
with the splitting into words, the stems and the scores of Sphinx, by which its index of the pages
is searched.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from sphinx.search.en import SearchEnglish

DOCS = Path(__file__).parents[1] / "docs"
TITLE, HEADING, TERM = 15, 7, 5  # title, partialTitle and term of Sphinx' searchtools.js
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
]
FIRST = 3  # how many answers people look at


@cache
def pages():
    """What each page is called, and the score of each of its words."""
    found = {}
    for file in sorted([*DOCS.glob("*.md"), *DOCS.glob("how-to/*.md")]):
        text = file.read_text()
        if file.stem in ("index", "changes", "deploying", "configuration", "contributing"):
            continue
        scores = Counter(dict.fromkeys(stems(text), TERM))
        for heading in re.findall(r"^##+ (.*)$", text, re.MULTILINE):
            scores.update(dict.fromkeys(stems(heading), HEADING))
        scores.update(dict.fromkeys(stems(text.split("\n", 1)[0]), TITLE))
        found[str(file.relative_to(DOCS).with_suffix(""))] = scores
    return found


@pytest.mark.long
@pytest.mark.parametrize(("question", "page"), QUESTIONS)
def test_search_answers_with_the_page(question, page):
    """All words are on the page, and at most two other pages score more."""
    found = pages()
    words = [word for word in stems(question) if word]
    matching = {
        name: sum(scores[word] for word in words)
        for name, scores in found.items()
        if all(word in scores or LANGUAGE.word_filter(word) is False for word in words)
    }
    assert page in matching, f"{page} lacks one of {words}"
    better = [name for name in matching if matching[name] > matching[page]]
    assert len(better) < FIRST, better


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


if __name__ == "__main__":  # of `make docs`, which has built the index
    text = Path(sys.argv[1]).read_text()
    ranks = ranks_in_the_built_index(json.loads(text[len("Search.setIndex(") : text.rindex(")")]))
    missed = {question: rank for question, rank in ranks.items() if rank is None or rank > FIRST}
    sys.exit(f"the search does not answer: {missed}" if missed else 0)
