"""Running an experiment: point by point, each kept on disk at once, then the report of all.

Below its directory ``points/`` has a JSON file per point, next to `RESULT`, `TABLE` and pictures.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bagbasis.core.errors import ConfigError, StoreError
from bagbasis.data.storage.files import writing
from bagbasis.execution.tasks import current_client

from ...files import plain, write_report
from ...markdown import markdown_table
from ...pictures.evaluation import save_figure
from ...terminal import Terminal
from ..machine import machine, versions
from .experiment import Experiment, Measure, Point, Result, ResultTable, short_name
from .frame import frame, summary

RESULT, TABLE, _POINTS = "result.json", "table.md", "points"


def run_experiment(experiment: Experiment, console: Terminal) -> dict[str, Any]:
    """Measure the points that are not on disk yet, write the report, and return it.

    A stored point is used again if experiment, seed, parameters, machine and versions of packages
    are the same, so all points of a report have one machine and one set of versions. A change of
    this project's own code does not count: delete the directory to measure again.
    """
    if experiment.alone and current_client() is not None:
        raise ConfigError(f"{experiment.name} measures single processes: leave out --cluster")
    console.heading(f"{experiment.title} ({experiment.source}), scale {experiment.scale}")
    console.line(f"  {experiment.size}")
    where = {"machine": machine(), "versions": versions()}
    points = experiment.points()
    results = []
    for i, (point, measure) in enumerate(points, 1):
        path = point_path(experiment, point, where)
        label = f"{experiment.name} {i}/{len(points)}, {point.label}"
        result = read_point(path, point)
        if result is None:
            result = measure_point(measure, point, label, console)
            write_report(path, _record(result))
            console.line(f"  {label} ({result.seconds:.1f} s)")
        else:
            console.line(f"  {label}: measured before")
        results.append(result)
    return _report(experiment, results, where, console)


def point_path(experiment: Experiment, point: Point, where: Mapping[str, Any]) -> Path:
    """Return the file of a point; its name is made from all that decides the result."""
    key = {"experiment": experiment.name, "seed": experiment.seed, "params": point.params, **where}
    slug = re.sub(r"[^a-z0-9]+", "-", point.label.lower()).strip("-")
    return experiment.out_dir / _POINTS / f"{slug}-{short_name(key)}.json"


def read_point(path: Path, point: Point) -> Result | None:
    """Return the result in a point's file, None if there is none; StoreError for another file."""
    try:
        record = json.loads(path.read_text())
        return Result(point, record["values"], float(record["seconds"]))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{path}: is no measured point ({error}); delete it") from error


def measure_point(measure: Measure, point: Point, label: str, console: Terminal) -> Result:
    """Return what a measure finds at a point, and its seconds."""
    begun = time.perf_counter()
    with console.progress(label, "steps") as progress:
        values = measure.run(point.params, progress)
    return Result(point, plain(values), time.perf_counter() - begun)


def _record(result: Result) -> dict[str, Any]:
    return {**vars(result.point), "values": result.values, "seconds": result.seconds}


def read_report(folder: Path) -> tuple[dict[str, Any], list[Result]]:
    """Return the report in an experiment's directory, and the results in it."""
    report = json.loads((folder / RESULT).read_text())
    points = [(Point(p["label"], p["params"]), p["values"], p["seconds"]) for p in report["points"]]
    return report, [Result(*point) for point in points]


def _render(
    experiment: Experiment, tables: Sequence[ResultTable], report: Mapping[str, Any]
) -> str:
    """Render tables, links to the pictures, and where it was measured."""
    parts = [f"# {experiment.title}", introduction(experiment, report)]
    for table in tables:
        parts += [f"## {table.title}", markdown_table(table.columns, table.rows)]
    parts += [f"![{name}]({name})" for name in report["pictures"]]
    where, packages = report["machine"], report["versions"]
    parts.append(
        f"Seed {report['seed']}; {report['seconds']:.0f} s on {where['cores']} cores of "
        f"{where['cpu']}, {where['memory_gib']} GiB, {where['system']}; "
        + ", ".join(f"{name} {version}" for name, version in packages.items())
        + "."
    )
    return "\n\n".join(parts) + "\n"


def introduction(experiment: Experiment, report: Mapping[str, Any]) -> str:
    """Return where the paper has the experiment, how to run it, and how large it was."""
    return (
        f"{experiment.source}, `bags experiment {experiment.name} --scale {report['scale']}`. "
        f"{report['size']}"
    )


def _report(
    experiment: Experiment, results: Sequence[Result], where: Mapping[str, Any], console: Terminal
) -> dict[str, Any]:
    rows = frame(results)
    pictures = [
        save_figure(picture.draw(rows, experiment.title), experiment.out_dir / picture.file)
        for picture in experiment.pictures
    ]
    measures = dict.fromkeys(result.params.get("measure", "") for result in results)
    tables = experiment.tables(results) or [summary(results, measure) for measure in measures]
    report = {
        "experiment": experiment.name,
        "source": experiment.source,
        "scale": experiment.scale,
        "size": experiment.size,
        "seed": experiment.seed,
        **where,
        "seconds": sum(result.seconds for result in results),
        "tables": [vars(table) for table in tables],
        "points": [_record(result) for result in results],
        "pictures": [path.name for path in pictures],
    }
    write_report(experiment.out_dir / RESULT, report)
    with writing(experiment.out_dir / TABLE) as temporary:
        temporary.write_text(_render(experiment, tables, report))
    for table in tables:
        console.table(table.title, table.columns, table.rows)
    for path in [*pictures, experiment.out_dir / TABLE, experiment.out_dir / RESULT]:
        console.line(str(path))
    return report
