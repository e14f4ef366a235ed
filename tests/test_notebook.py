"""The notebook of twenty cells, as `make docs` runs it: short answers, in the digits they have."""

import ast
import contextlib
import io
import re
from pathlib import Path

import matplotlib as mpl
import pytest

from bagbasis.models import stacking

NOTEBOOK = Path(__file__).parents[1] / "docs" / "tutorials" / "plot_answers.py"
MAX_LINES = 40
LONG = re.compile(
    r"[1-9]\d*\.\d{5,}|\b0\.0*[1-9]\d{4,}|\d{7,}"
)  # digits that no error of 200 patients allows


def answer_of(cell, names):
    """What a cell prints, and what its last expression is."""
    *body, last = ast.parse(cell).body
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(ast.Module(body, []), "cell", "exec"), names)  # noqa: S102 - our own page
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)  # noqa: S307
            if value is not None:
                print(value)
        else:
            exec(compile(ast.Module([last], []), "cell", "exec"), names)  # noqa: S102
    return printed.getvalue()


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::bagbasis.BagbasisWarning")
def test_each_cell_has_a_short_answer(monkeypatch, tmp_path):
    """Twenty cells, each of at most forty lines; the verdicts have their errors next to them."""
    mpl.use("agg")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(stacking, "N_RANDOMISED", 20)  # `make docs` has as many trees as users
    _, *cells = re.split(r"^# %%.*$", NOTEBOOK.read_text(), flags=re.MULTILINE)
    assert len(cells) == 20
    names = {"__name__": "__main__"}
    answers = [answer_of(cell, names) for cell in cells]
    for answer in answers:
        assert len(answer.splitlines()) <= MAX_LINES
        assert not LONG.search(re.sub(r"/\S+", "", answer)), answer
    verdicts = [answer for answer in answers if answer.startswith("Predicting ")]
    assert [verdict.split(":")[0] for verdict in verdicts] == [
        "Predicting score",
        "Predicting kind",
    ]
    assert all(" ± " in verdict for verdict in verdicts)
