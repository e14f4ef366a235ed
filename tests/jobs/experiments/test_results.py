"""The kept results: notes with their numbers, and today's code would measure the same points."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bagbasis.jobs.experiments.kit.frame import frame, summary
from bagbasis.jobs.experiments.kit.runner import TABLE, introduction, read_report
from bagbasis.jobs.experiments.registered import EXPERIMENTS
from bagbasis.jobs.experiments.results import RESULTS, overview
from bagbasis.jobs.files import plain
from bagbasis.jobs.markdown import markdown_table
from bagbasis.jobs.pictures.evaluation import new_figure
from tests.jobs.experiments.contract import make


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_kept_points_are_those_of_today(name):
    """The scale in the YAML file has these points, perhaps with parameters that were not told
    apart then."""
    report, results = read_report(RESULTS / name)
    experiment = make(name, Path("unused"), report["scale"], report["seed"])
    points = {p.label: plain(p.params) for p, _ in experiment.points()}
    assert {r.point.label for r in results} == set(points)
    for r in results:
        assert _is_part(r.params, points[r.point.label])


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_both_scales_have_the_same_keys(name):
    """A key that one scale lacks, or has in excess, is a mistake: nothing else checks the keys."""
    small, paper = (vars(make(name, scale=scale).settings) for scale in ("small", "paper"))
    assert small.keys() == paper.keys()


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_notes_have_the_kept_tables(name):
    """Every table of result.json stands in table.md, with its pictures."""
    report, _ = read_report(RESULTS / name)
    text = (RESULTS / name / TABLE).read_text()
    assert introduction(make(name), report) in text
    for table in report["tables"]:
        assert f"## {table['title']}\n\n{markdown_table(table['columns'], table['rows'])}" in text
    for picture in report["pictures"]:
        assert f"![{picture}]({picture})" in text
        assert (RESULTS / name / picture).is_file()


@pytest.mark.long
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_kept_points_are_summarised_and_drawn(name, monkeypatch):
    """Today's tables and pictures take the frame of the points."""
    monkeypatch.setattr("bagbasis.jobs.pictures.evaluation.DOTS_PER_INCH", 30)
    _, results = read_report(RESULTS / name)
    for measure in dict.fromkeys(r.params.get("measure", "") for r in results):
        table = summary(results, measure)
        assert table.rows
        assert {len(row) for row in table.rows} == {len(table.columns)}
    rows = frame(results)
    for picture in make(name).pictures:
        figure = picture.draw(rows, "title")
        assert isinstance(figure, type(new_figure(1, 1)))
        for axis in figure.axes:
            assert axis.has_data()


def test_overview_is_of_the_kept_results():
    """results/README.md has every table as it is kept: `python -m` the module writes it again."""
    assert overview() == (RESULTS / "README.md").read_text()


def _is_part(saved: Any, today: Any) -> bool:
    """Whether parameters are those of today, which may have others in addition."""
    if isinstance(saved, dict):
        return all(name in today and _is_part(value, today[name]) for name, value in saved.items())
    if isinstance(saved, list):
        return len(saved) == len(today) and all(map(_is_part, saved, today))
    return bool(saved == today)
