"""The kept results: what today's code makes of them, and that it would measure the same points."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bagbasis.jobs.experiments import EXPERIMENTS
from bagbasis.jobs.experiments.kit.runner import TABLE, read_report, render
from bagbasis.jobs.experiments.results import RESULTS, overview
from bagbasis.jobs.files import plain
from tests.jobs.experiments.contract import make


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_kept_points_give_the_kept_tables(name):
    """Every number and word of table.md comes from the points in result.json; the scale in the
    YAML file has these points, perhaps with parameters that were not told apart then.

    Another processor's libm and LAPACK may round the last digits otherwise, which are not printed.
    """
    report, results = read_report(RESULTS / name)
    experiment = make(name, Path("unused"), report["scale"], report["seed"])
    experiment.cores = report["machine"]["cores"]
    tables = experiment.tables(results)
    assert render(experiment, tables, report) == (RESULTS / name / TABLE).read_text()
    _assert_alike(plain({"tables": [vars(table) for table in tables]})["tables"], report["tables"])
    assert experiment.size == report["size"]
    points = {p.label: plain(p.params) for p, _ in experiment.points()}
    assert {r.point.label for r in results} == set(points)
    for r in results:
        assert _is_part(r.params, points[r.point.label])
    for picture in report["pictures"]:
        assert (RESULTS / name / picture).is_file()


def test_overview_is_of_the_kept_results():
    """results/README.md has every table as it is kept: `python -m` the module writes it again."""
    assert overview() == (RESULTS / "README.md").read_text()


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_is_run(name):
    """Each has a module of tests, which holds it to the contract."""
    text = (Path(__file__).parent / f"test_{name.replace('-', '_')}.py").read_text()
    assert f'name = "{name}"' in text
    assert "(Contract):" in text


def _assert_alike(today: Any, kept: Any) -> None:
    """Numbers are equal to nine digits, all else is equal."""
    if isinstance(kept, dict):
        assert today.keys() == kept.keys()
        for name in kept:
            _assert_alike(today[name], kept[name])
    elif isinstance(kept, list):
        assert len(today) == len(kept)
        for one, other in zip(today, kept, strict=True):
            _assert_alike(one, other)
    elif isinstance(kept, float):
        assert today == pytest.approx(kept, rel=1e-9, nan_ok=True)
    else:
        assert today == kept


def _is_part(kept: Any, today: Any) -> bool:
    """Whether parameters are those of today, which may have others beside them."""
    if isinstance(kept, dict):
        return all(name in today and _is_part(value, today[name]) for name, value in kept.items())
    if isinstance(kept, list):
        return len(kept) == len(today) and all(map(_is_part, kept, today))
    return bool(kept == today)
