"""The kept results: ``python -m bagbasis.jobs.experiments.results`` writes their overview.

``result.json`` has points and tables of a run, ``table.md`` is the note on it with remarks, written
by hand. ``README.md`` next to them has all tables on one page.
"""

from __future__ import annotations

from pathlib import Path

from bagbasis.data.storage.files import writing

from ..markdown import markdown_table
from .kit.runner import introduction, read_report
from .registered import EXPERIMENTS, experiment_type

RESULTS = Path("jobs/experiments/results")  # in the source tree, where the command is to be run


def overview() -> str:
    """All tables and pictures of the kept results in Markdown, without their remarks."""
    parts = [
        "# Results of the experiments",
        "Made from each `result.json` by `python -m bagbasis.jobs.experiments.results`. What the "
        "columns mean, where we lose, and on which machine it was measured stand in each "
        "experiment's `table.md`.",
    ]
    for name in EXPERIMENTS:
        report, _ = read_report(RESULTS / name)
        experiment = experiment_type(name)(report["scale"], report["seed"], RESULTS / name)
        parts += [f"## [{experiment.title}]({name}/table.md)", introduction(experiment, report)]
        for table in report["tables"]:
            parts += [f"### {table['title']}", markdown_table(table["columns"], table["rows"])]
        parts += [f"![{picture}]({name}/{picture})" for picture in report["pictures"]]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    with writing(RESULTS / "README.md") as temporary:
        temporary.write_text(overview())
