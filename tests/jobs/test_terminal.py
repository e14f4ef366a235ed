"""Tables and progress, on a terminal and in a log."""

from __future__ import annotations

import io
import re
import threading

import pytest
from rich.console import Console

from bagbasis import BagStore, StoreError
from bagbasis.jobs.shell import complain
from bagbasis.jobs.terminal import SECONDS_BETWEEN_LINES, PlainProgress, Terminal


def console(terminal=False):
    """A console that writes into a string."""
    return Console(file=io.StringIO(), force_terminal=terminal, width=100, highlight=False)


class Clock:
    """A clock that is set by hand."""

    now = 0.0

    def __call__(self):
        return self.now


def test_plain_progress_is_a_line_every_ten_seconds():
    """Without a terminal, calls in between print nothing, and a line says what is left."""
    out, clock = console(), Clock()
    progress = PlainProgress(out, "fit", "bags", clock)
    for second in range(0, 31):
        clock.now = float(second)
        progress(second * 1000, 40_000)
    lines = out.file.getvalue().splitlines()
    assert len(lines) == 30 // SECONDS_BETWEEN_LINES
    assert lines[0] == "fit: 10,000 of 40,000 bags (25 %), about 30 s left"
    assert lines[2] == "fit: 30,000 of 40,000 bags (75 %), about 10 s left"
    progress.note("step 2")
    clock.now = 40.0
    progress(40_000, 40_000)
    assert "fit, step 2: 40,000 of" in out.file.getvalue()


@pytest.mark.parametrize("terminal", [True, False])
def test_a_line_beside_the_progress_is_said_once(terminal):
    """At once, on a terminal and in a log."""
    err = console(terminal=terminal)
    with Terminal(console(), err).progress("fit") as progress:
        progress.say("compiling kernels (once)")
        progress.say("compiling kernels (once)")
    assert err.file.getvalue().count("fit: compiling kernels (once)\n") == 1


def test_plain_progress_starts_again_for_the_next_pass():
    """When the count falls, the time that is left is that of the new pass."""
    out, clock = console(), Clock()
    progress = PlainProgress(out, "fit", "bags", clock)
    clock.now = 5.0
    progress(100, 100)
    clock.now = 100.0
    progress(0, 100)
    clock.now = 110.0
    progress(50, 100)
    assert out.file.getvalue().splitlines()[-1] == "fit: 50 of 100 bags (50 %), about 10 s left"


def test_bar_on_a_terminal_moves_with_the_work():
    """On a terminal a bar shows the counts, called from several threads at once."""
    err = console(terminal=True)
    with Terminal(console(), err).progress("verify", "points") as progress:
        threads = [threading.Thread(target=progress, args=(k, 8)) for k in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        progress(8, 8)
    shown = err.file.getvalue()
    assert "verify, finishing" in shown
    assert "8/8" in shown
    assert "points" in shown


def test_a_phase_without_counts_is_named_at_once():
    """On a bar, and in a log when its last line is ten seconds old."""
    err = console(terminal=True)
    with Terminal(console(), err).progress("fit") as progress:
        progress.note("choosing the embedding, 3 tried")
    assert "fit, choosing the embedding, 3 tried" in err.file.getvalue()
    now, out = [0.0], console()
    progress = PlainProgress(out, "fit", "bags", lambda: now[0])
    progress.note("growing trees")
    assert out.file.getvalue() == ""
    now[0] = SECONDS_BETWEEN_LINES
    progress.note("choosing the embedding, 12 tried")
    progress.note("choosing the embedding, 13 tried")
    assert out.file.getvalue() == "fit, choosing the embedding, 12 tried\n"


def test_table_shows_values_as_people_read_them():
    """Numbers with four digits, lists without Python's signs, text as it is."""
    out = console()
    values = {
        "n_bags": 1234567,
        "rmse": 1.23456789,
        "ok": True,
        "none": None,
        "box": [[0.0, 1.0], [-2.0, 2.0]],
        "empty": [],
        "source": {"seed": 0, "names": ["a", "b"]},
        "text": "[red]a/b[/red]",
    }
    Terminal(out, console()).values("Title", values)
    printed = out.file.getvalue()
    for text in (
        "1,234,567",
        "1.235",
        "yes",
        "[0, 1], [-2, 2]",
        "seed 0, names a, b",
        "[red]a/b[/red]",
    ):
        assert text in printed
    assert printed.startswith("Title")


def test_quiet_terminal_keeps_the_progress():
    """A step of a longer job prints no tables, but shows its progress."""
    out, err = console(), console(terminal=True)
    quiet = Terminal(out, err).without_tables()
    quiet.values("Title", {"a": 1})
    quiet.line("text")
    with quiet.progress("fit") as progress:
        progress(1, 2)
    assert out.file.getvalue() == ""
    assert "fit" in err.file.getvalue()


ESCAPES = "a\x1b]0;mine\x07b\x9b2Jc\x7f"


def test_control_characters_are_shown_as_text(capsys):
    """Names of a store and lines of a run, wherever they are printed, move no cursor."""
    out = console()
    terminal = Terminal(out, out)
    terminal.line(ESCAPES)
    terminal.heading(ESCAPES)
    terminal.table(ESCAPES, [ESCAPES], [[ESCAPES], [[ESCAPES]], [{ESCAPES: 1}]])
    terminal.values("", {ESCAPES: ESCAPES})
    PlainProgress(out, "fit", "bags").say(ESCAPES)
    complain(ESCAPES)
    message = out.file.getvalue() + capsys.readouterr().err
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", message)
    assert message.count(r"a\x1b]0;mine\x07b\x9b2Jc\x7f") == 11


def test_advice_is_in_words_of_the_shell(tmp_path, capsys):
    """What a program would pass is a key in a shell."""
    BagStore.create(tmp_path / "bags.zarr", n_dims=2).append([[[0, 1]]])
    with pytest.raises(StoreError, match=r"replace it with overwrite=True, or add") as caught:
        BagStore.create(tmp_path / "bags.zarr", n_dims=2)
    complain(str(caught.value))
    assert "remove it, replace it with overwrite=true, or add to it" in capsys.readouterr().err
    complain("p.csv: exists already; choose another name, or overwrite=True")
    assert "choose another name, or set overwrite=true\n" in capsys.readouterr().err
    complain("the folder is full; pass progress=False")
    assert capsys.readouterr().err == "bags: the folder is full; set progress=false\n"


@pytest.mark.parametrize(("width", "has_lines"), [(80, True), (38, False)])
def test_a_narrow_terminal_breaks_no_word(width, has_lines):
    """A table that would break words has a line for each cell instead."""
    out = Console(file=io.StringIO(), force_terminal=True, width=width, highlight=False)
    row = ["4d2f1dc228cec405", "DoubleBasisRegressor", "bags 496"]
    Terminal(out, out).table("Models", ["model", "estimator", "numbers"], [row, row], ("model",))
    printed = out.file.getvalue()
    assert ("┃" in printed) == has_lines
    for word in " ".join(row).split():
        assert printed.count(word) == 2
    assert (f"estimator: {row[1]}" in printed) != has_lines
