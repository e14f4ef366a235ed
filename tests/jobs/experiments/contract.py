"""What holds for every experiment at small scale; its own test adds what it claims."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar

import pytest

from bagbasis.jobs.experiments import experiment_type
from bagbasis.jobs.experiments.kit import experiment as kit_experiment
from bagbasis.jobs.experiments.kit.experiment import Point, Result
from bagbasis.jobs.experiments.kit.runner import read_report, render
from bagbasis.jobs.files import plain
from tests.jobs.running import assert_picture, done, settings

# Of all, the least to compute: `make test` runs these two, `make test-experiments` the others.
CHEAPEST = ("learned-spectrum", "radiation")


def make(name, out_dir=Path("unused"), scale="small", seed=0):
    """An experiment of the registry."""
    return experiment_type(name)(scale, seed, out_dir)


def result(values, took=1.0, **params):
    """A point that was measured."""
    return Result(Point("", params), values, took)


def with_sizes(values, sizes):
    """Values of a scale with others in place of some of them, in sections of it, too."""
    inner = {k: with_sizes(values[k], v) for k, v in sizes.items() if isinstance(v, dict)}
    return {**values, **sizes, **inner}


class Contract:
    """A small run, what it leaves behind, and that it is not made again.

    Attributes
    ----------
    name : str
        Of the experiment.
    seed : int
    sizes : dict
        In place of scale small's, where the claims hold within their bounds with less to wait for;
        what tests say of several seeds was measured at scale small.
    """

    name: str
    seed = 0
    sizes: ClassVar[dict[str, Any]] = {}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if cls.name not in CHEAPEST:
            pytest.mark.experiments(cls)

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def _smaller(cls):
        """What the YAML file says is small, with these sizes."""
        scales = kit_experiment.scales(cls.name)
        small = with_sizes(scales["small"], cls.sizes)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(kit_experiment, "scales", lambda _: {**scales, "small": small})
            yield

    @pytest.fixture(scope="class")
    @classmethod
    def out_dir(cls, tmp_path_factory, _smaller):
        """What the command leaves behind at small scale, with few pixels."""
        where = tmp_path_factory.mktemp(cls.name)
        with pytest.MonkeyPatch.context() as coarse:
            coarse.setattr("bagbasis.jobs.pictures.evaluation.DOTS_PER_INCH", 60)
            done("experiment", cls.name, *settings(out_dir=where, seed=cls.seed))
        return where

    @pytest.fixture(scope="class")
    @classmethod
    def report(cls, out_dir):
        """Its result.json."""
        return read_report(out_dir)[0]

    @pytest.fixture(scope="class")
    @classmethod
    def results(cls, out_dir):
        """Its points."""
        return read_report(out_dir)[1]

    def test_report(self, out_dir, report, results):
        """Points are those declared, tables are whole and of the points alone, with remarks; every
        picture is drawn."""
        experiment = make(self.name, out_dir, seed=self.seed)
        points = [(p.label, plain(p.params)) for p, _ in experiment.points()]
        assert points == [(r.point.label, r.params) for r in results]
        tables = experiment.tables(results)
        drawn = plain({"tables": [vars(t) for t in tables]})
        assert json.loads(json.dumps(drawn))["tables"] == report["tables"]
        assert (out_dir / "table.md").read_text() == render(experiment, tables, report)
        for table in report["tables"]:
            assert table["rows"]
            assert table["remarks"]
            assert {len(row) for row in table["rows"]} == {len(table["columns"])}
        assert report["pictures"]
        for name in report["pictures"]:
            assert_picture(out_dir / name)

    def test_second_run_measures_nothing(self, out_dir, report, monkeypatch):
        """Points, stores and models are found again, and the report is the same."""
        monkeypatch.setattr("bagbasis.jobs.experiments.kit.runner._measure_point", None)
        # the pictures of the first run are looked at; drawing takes longer than all else here
        monkeypatch.setattr(kit_experiment, "save_figure", lambda _, path: path)
        printed = done("experiment", self.name, *settings(out_dir=out_dir, seed=self.seed))
        assert printed.count("measured before") == len(report["points"])
        assert read_report(out_dir)[0] == report
