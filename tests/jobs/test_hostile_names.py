"""Names of classes, targets and bags are texts: no mathematics, no formula, no end of a row."""

from __future__ import annotations

import warnings
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest
from matplotlib.text import Text

from bagbasis import BagbasisWarning, BagStore, DoubleBasisRegressor, MomentsEmbedding
from bagbasis.jobs.pictures.evaluation import (
    draw_confusion,
    draw_judged_predictions,
    draw_residuals,
    label_of,
    new_figure,
    save_figure,
)
from bagbasis.models import write_predictions
from tests.jobs.running import assert_picture

NAMES = [
    "$price_$", r"$\frac{", "$", "two\nlines", "a\x1b[31mred", "\u202eright to left", "x" * 5000,
    "名\U0010fffd", "<b>&amp;",
]  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_names_in_pictures(name, tmp_path, monkeypatch):
    """Each is drawn as it is written, without a warning, wherever a picture has a name."""
    monkeypatch.setattr("bagbasis.jobs.pictures.evaluation.writing", recorded(tmp_path / "a.png"))
    error = {"n": 3, "rmse": 1.0, "constant_rmse": 1.0, "r2": 0.0, "bias": 0.1}
    pairs = [np.array([[0.1, 0.2], [0.5, 0.4], [0.9, 1.0]])]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for draw in (
            lambda: draw_confusion("a", np.eye(2, dtype=int), [name, "b"], name, 1.0),
            lambda: draw_judged_predictions("a", pairs, [name], [error]),
            lambda: draw_residuals("a", pairs, [name], [error]),
        ):
            draw()
            assert_picture(tmp_path / "a.png")
    assert label_of(name).isprintable()
    assert len(label_of(name)) <= 40


def recorded(path):
    """A stand-in of `writing` that writes to one place."""

    @contextmanager
    def place(_):
        yield path

    return place


@pytest.mark.long
def test_no_text_of_a_figure_is_mathematics(tmp_path):
    """Titles, legends, notes and ticks; powers of ten stay what they are."""
    figure = new_figure(4, 3)
    axis = figure.subplots()
    axis.plot([1, 1000], [1, 1000], label="$a_$ $b")
    axis.set_yscale("log")
    axis.set_xticks([1, 1000], labels=["$x_$", "$y$"])
    axis.set_title("$t_$ and $u\x1b")
    axis.annotate("$n_$", (1, 1))
    axis.legend(title="$l_$")
    figure.suptitle("$s_$")
    save_figure(figure, tmp_path / "a.png")
    shown = {text.get_text(): text.get_parse_math() for text in figure.findobj(Text)}
    for name in ("$a_$ $b", "$x_$", "$y$", "$t_$ and $u\\x1b", "$n_$", "$l_$", "$s_$"):
        assert shown[name] is False
    assert shown["$\\mathdefault{10^{1}}$"] is True


def predictions(ids, path):
    bags = [np.random.default_rng(i).random((5, 2)) for i in range(len(ids))]
    store = BagStore.create(path.parent / "s.zarr", 2, target_names=["y"], overwrite=True)
    store.append(bags, {"y": [bag.mean() for bag in bags]}, ids=ids)
    model = DoubleBasisRegressor(MomentsEmbedding(), alpha=1.0).fit(store, target="y")
    write_predictions(model, store, str(path), overwrite=True)
    return pd.read_csv(path)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::bagbasis.core.errors.BagbasisWarning")
def test_line_breaks_in_ids(tmp_path):
    """Ids of any kind: a row stays a row, and ids come back whole."""
    kinds = ["\r", "\n", "\r\n", ",", '"', "\u2028", "\x0b", " "]
    ids = [f"plate{i}{kinds[i % len(kinds)]}well" for i in range(24)] + ["\rfirst", "last\r"]
    table = predictions(ids, tmp_path / "p.csv")
    assert table.iloc[:, 0].tolist() == ids
    assert table.notna().all(axis=None)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::bagbasis.core.errors.BagbasisWarning")
def test_cells_that_are_formulas(tmp_path):
    """They are quoted, unchanged, and a warning says what a spreadsheet would do."""
    ids = ["=cmd|'/C calc'!A0", "+1", "-1", "@SUM(A1)", "\t=1"] + [f"b{i}" for i in range(20)]
    with pytest.warns(BagbasisWarning, match=r"5 texts, such as .*formulas.*as text"):
        table = predictions(ids, tmp_path / "p.csv")
    assert table.iloc[:, 0].tolist() == ids
    assert "\"=cmd|'/C calc'!A0\"" in (tmp_path / "p.csv").read_text()


def test_numbers_are_not_formulas(tmp_path, recwarn):
    """Negative numbers, as ids or predictions, are numbers."""
    predictions(list(range(25)), tmp_path / "p.csv")
    assert not [warning for warning in recwarn if "for formulas" in str(warning.message)]
