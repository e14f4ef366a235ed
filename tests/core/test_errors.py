"""Where warnings point to, and what lines of messages hold."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from bagbasis import BagbasisWarning, DoubleBasisRegressor, MomentsEmbedding, cross_val_score
from bagbasis.core.errors import MAX_CHARACTERS, one_line, one_warning_each, printable, shown, warn


def test_a_warning_points_to_the_line_that_called_the_library(recwarn):
    """However many of its functions, and of its checks of parameters, lie between."""
    bags = list(np.random.default_rng(0).random((60, 5, 1)))
    y = np.array([bag.mean() for bag in bags])
    model = DoubleBasisRegressor(MomentsEmbedding(), alphas=[1.0, 1e3])
    line = inspect.currentframe().f_lineno + 1
    model.fit(bags, y)
    (warning,) = [warning for warning in recwarn if warning.category is BagbasisWarning]
    assert "of the grid" in str(warning.message)
    assert (warning.filename, warning.lineno) == (__file__, line)


def test_a_call_that_fits_often_warns_once(recwarn):
    """Each fold warned of its penalty: the call warns once, and says how often it would have."""
    bags = list(np.random.default_rng(0).random((60, 5, 1)))
    y = np.array([bag.mean() for bag in bags])
    model = DoubleBasisRegressor(MomentsEmbedding(), alphas=[1.0, 1e3])
    line = inspect.currentframe().f_lineno + 1
    cross_val_score(model, bags, y, cv=4)
    (warning,) = [warning for warning in recwarn if warning.category is BagbasisWarning]
    assert "of the grid" in str(warning.message)
    assert "(and 3 more such warnings)" in str(warning.message)
    assert (warning.filename, warning.lineno) == (__file__, line)


def test_warnings_are_gathered_by_kind(recwarn):
    """One of each kind when the outer block ends, also where it fails."""

    def first(text):
        warn(text)

    @one_warning_each()
    def run():
        with one_warning_each():
            first("a 1")
            first("a 2")
        warn("b 1")
        assert not len(recwarn)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run()
    messages = [str(warning.message) for warning in recwarn]
    assert messages == ["a 1 (and 1 more such warning)", "b 1"]


@pytest.mark.parametrize("mark", "\u061c\u200e\u200f\u202a\u202e\u2066\u2069")
def test_marks_of_direction_are_escaped(mark):
    """What shows a name in another order than it has, is shown itself."""
    assert printable(f"a{mark}b") == f"a\\u{ord(mark):04x}b"


def test_arrays_in_messages_are_described():
    """Their numbers would hide what the message says: shape and type stand for them."""
    bags = [np.random.default_rng(0).random((20, 2)) for _ in range(3)]
    assert shown(bags[0]) == "<ndarray of shape (20, 2), float64>"
    assert shown(bags) == "[" + ", ".join(["<ndarray of shape (20, 2), float64>"] * 3) + "]"
    assert shown(np.float64(2.5)) == repr(np.float64(2.5))


@pytest.mark.parametrize("length", [MAX_CHARACTERS, MAX_CHARACTERS + 1, 5 * MAX_CHARACTERS])
def test_a_long_line_keeps_its_ends(length):
    """Two thirds are of its beginning, one of its end, where the advice stands."""
    line = "".join(chr(ord("a") + i % 26) for i in range(length))
    cut = one_line(line)
    assert len(cut) == MAX_CHARACTERS
    assert (cut == line) == (length == MAX_CHARACTERS)
    begin, _, end = cut.partition(" … ")
    assert line.startswith(begin)
    assert line.endswith(end)
    assert not end or len(end) == MAX_CHARACTERS // 3


def test_notebooks_show_the_lines_of_the_caller_alone(capsys):
    """The message says what is wrong; the frames of the package between say nothing to a caller."""
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell()
    shell.run_cell(
        "from bagbasis import DoubleBasisRegressor\n"
        "def outer():\n"
        "    return DoubleBasisRegressor('momets').fit([[[1.0]]], [1.0])\n"
        "outer()"
    )
    printed = capsys.readouterr().out
    assert "return DoubleBasisRegressor('momets')" in printed
    assert "ParameterError: embedding is 'momets' (did you mean 'moments'?)" in printed
    assert printed.count("  File ") == 2
    assert "bagbasis/" not in printed
    shell.run_cell("%tb")
    assert "ParameterError: embedding is 'momets'" in capsys.readouterr().out
