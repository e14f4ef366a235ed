"""The demo, on less data: both parts, its report, and what it does to its directory."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bagbasis.jobs.commands.demo import start_over
from tests.jobs.pages import Page
from tests.jobs.running import CONFIGS, assert_picture, done, refused, settings

DEMO = CONFIGS / "demo.yaml"
SMALL = settings(
    digits__model__embedding__max_norm=3,
    digits__model__random_features__n_features=128,
    mixture__n_train=200,
    mixture__n_test=60,
    mixture__n_points=30,
    mixture__model__random_features__n_features=64,
)


@pytest.mark.long
def test_demo_writes_models_pictures_and_report(tmp_path, monkeypatch):
    """Without a file the demo's own config is taken, wherever it is called from: everything is in
    its out_dir, and the terminal names the pictures and the errors."""
    monkeypatch.chdir(tmp_path)
    out_dir = Path("demo-output")
    printed = done("demo", *SMALL)
    report = json.loads((out_dir / "report.json").read_text())
    digits = report["digits"]["evaluate"]["targets"]["digit"]
    assert digits["accuracy"] > 0.8
    assert f"{digits['accuracy']:.3f}" in printed
    assert report["mixture"]["evaluate"]["targets"]["n_components"]["n"] == 60
    pictures = [p for part in ("digits", "mixture") for p in report[part]["evaluate"]["pictures"]]
    assert len(pictures) == 5
    for path in pictures:
        assert path in printed
        assert_picture(Path(path))
    assert {path.name for path in out_dir.iterdir()} == {
        ".bagbasis-demo",
        "digits",
        "mixture",
        "report.html",
        "report.json",
    }
    assert printed.endswith(f"{out_dir / 'report.html'}\n")
    page = Page(out_dir / "report.html")
    page.assert_self_contained()
    assert {"Fit of digit", "Evaluation of n_components", "Confusion"} <= set(page.texts)
    verdicts = [line for line in printed.splitlines() if line.startswith("Predicting ")]
    assert len(verdicts) == 2  # of the evaluations alone: a fit's own estimate is another measure
    assert "a random forest" in verdicts[0]
    text = " ".join(page.texts)
    assert all(line in text for line in verdicts)
    assert text.index("Predicting digit") < text.index("What to worry about")
    assert page.texts.count("Next:") == 2


def test_demo_starts_over(tmp_path):
    """What an earlier demo left is removed; a file that somebody put next to it stays."""
    out_dir = start_over(tmp_path / "out")
    for name in ("digits/left-over.png", "mixture/train.zarr/zarr.json", "report.json", "mine.txt"):
        (out_dir / name).parent.mkdir(parents=True, exist_ok=True)
        (out_dir / name).write_text("")
    start_over(out_dir)
    assert {path.name for path in out_dir.iterdir()} == {".bagbasis-demo", "mine.txt"}


def test_demo_refuses_a_directory_with_other_files(tmp_path):
    """A directory that no demo made is left alone."""
    (tmp_path / "digits").mkdir()
    (tmp_path / "digits" / "thesis.txt").write_text("years of work")
    line = refused(2, "demo", DEMO, *SMALL, *settings(out_dir=tmp_path))
    assert "'out_dir'" in line
    assert (tmp_path / "digits" / "thesis.txt").read_text() == "years of work"
    assert len(list(tmp_path.iterdir())) == 1
