"""Reports of models and tests from Python are those of the commands, in the same words."""

from __future__ import annotations

import json

import numpy as np
import pytest

from bagbasis import StoreError, evaluate, load_model
from bagbasis.hypotheses import two_sample_test
from bagbasis.models.fitted_model import JUDGED_ON_FITTED
from bagbasis.models.verdict import percent
from tests.jobs.pages import Page
from tests.jobs.running import done, settings
from tests.models.predicting import BAGS, CODES, NAMES, Y, classifier, regressor
from tests.oracles.labelled import stored
from tests.shown import rounded


def answer_of(url):
    """The sentences that the page begins with, see `Page.answer`."""
    page = Page(url)
    page.assert_self_contained()
    return page, page.answer


@pytest.mark.parametrize("kind", ["numbers", "classes"])
def test_bags_in_memory(tmp_path, kind):
    """Errors on the bags held out, as `evaluate` has them; bags go by their positions."""
    model, y = (regressor(), Y) if kind == "numbers" else (classifier(), NAMES[CODES])
    model.fit(BAGS, y, holdout=0.4).report(tmp_path / "fit.html", BAGS, y)
    page, answer = answer_of(tmp_path / "fit.html")
    errors = evaluate(model, BAGS, y)
    assert f"on {errors.n} held-out bags" in answer
    assert errors.subset == "holdout"
    shown = percent(1 - errors.error, errors.standard_error)
    if kind == "numbers":
        shown = rounded(errors.error, errors.standard_error)
        of_bags = [title for title in page.titles if not title.startswith("without this point")]
        assert len(of_bags) == 3 * errors.n
        assert any(title.startswith("bag ") for title in page.titles)
    assert shown in answer
    assert "random forest" in answer
    assert "None" not in " ".join(page.texts)


def test_other_bags_and_none(tmp_path):
    """All bags of other data; the fit's folds for the bags fitted; no errors without bags.

    A penalty that is given leaves only errors on the bags fitted, and a warning of that.
    """
    model = regressor(alpha="auto").fit(BAGS[:50], Y[:50])
    model.report(tmp_path / "other.html", BAGS[50:], Y[50:])
    assert f"on {len(BAGS) - 50} bags" in answer_of(tmp_path / "other.html")[1]
    model.report(tmp_path / "own.html", BAGS[:50], Y[:50])
    page, answer = answer_of(tmp_path / "own.html")
    assert "error by cross-validation" in answer
    regressor().fit(BAGS, Y).report(tmp_path / "own.html", BAGS, Y)
    page, answer = answer_of(tmp_path / "own.html")
    assert f"on {len(BAGS)} bags that it was fitted to" in answer
    assert JUDGED_ON_FITTED in page.worries
    model.report(tmp_path / "own.html")  # an older report is replaced
    page, _ = answer_of(tmp_path / "own.html")
    assert "No error estimate" in page.worries
    (tmp_path / "mine.html").write_text("<p>")
    with pytest.raises(StoreError, match="not a report of a job"):
        model.report(tmp_path / "mine.html")


@pytest.mark.long
def test_a_store_has_the_report_of_bags_fit(tmp_path):
    """The same verdict, numbers and warnings."""
    store = stored(tmp_path / "s.zarr", BAGS, Y, ["y"])
    urls = settings(data_url=store.url, model_url=tmp_path / "m.zarr", report=tmp_path / "r.json")
    printed = done("fit", *urls, *settings(target="y", holdout=0.4, embedding="moments"))
    load_model(tmp_path / "m.zarr").report(tmp_path / "python.html", store)
    ours, answer = answer_of(tmp_path / "python.html")
    theirs, expected = answer_of(tmp_path / "r.html")
    assert answer == expected == printed.splitlines()[0]
    assert ours.titles == theirs.titles
    judged = json.loads((tmp_path / "r.json").read_text())["judged"]
    assert rounded(judged["error"], judged["standard_error"]) in answer


def test_info_of_a_model_is_its_summary(tmp_path):
    """A few lines; what is saved besides them is told with ``-v``."""
    model = classifier().fit(BAGS, NAMES[CODES])
    model.save(tmp_path / "m.zarr")
    short, long = (done("info", *more, tmp_path / "m.zarr") for more in ((), ("-v",)))
    assert len(short.splitlines()) < 12
    assert model.summary().rows["embedding"] in short
    assert "n_bags_fitted" in long
    assert "n_bags_fitted" not in short


def test_a_test(tmp_path):
    """The text as before, and the page of `bags test`."""
    rng = np.random.default_rng(0)
    result = two_sample_test(*rng.standard_normal((2, 40, 2)), n_permutations=19)
    text = result.report(tmp_path / "test.html")
    assert text == result.report() == str(result)
    assert answer_of(tmp_path / "test.html")[1].startswith(result.verdict())
