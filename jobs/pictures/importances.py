"""The part of a page on the importance of each coordinate."""

from __future__ import annotations

from bagbasis.models import Importance

from .charts import Bars
from .parts import Part, Table

MOST_BARS = 30  # coordinates of a chart; the table has all
SURE = 2.0  # standard errors that a drop has to be above 0


def importance_part(found: Importance) -> Part:
    """Return a chart of the most important coordinates, and a table of all, for each target."""
    bars, tables, worries = [], [], []
    note = f"± one standard error of {found.n_groups:,} bags"
    if found.n_groups < found.n:
        note = f"± one standard error of {found.n_groups:,} groups of {found.n:,} bags"
    how = f"Each bag was given another bag's values, {found.n_repeats} times; {note}."
    for target, values in found.values()["targets"].items():
        drops = values["drops"]
        names, heights, spreads = zip(*(one.values() for one in drops[:MOST_BARS]), strict=True)
        of = f"drop of {found.measure}, which is {values['score']:.3g}"
        bars.append(Bars(f"{target}: what each coordinate tells", of, names, heights, spreads, how))
        rows = [[*one.values()] for one in drops]
        columns = ["coordinate", f"drop of {found.measure}", "standard error"]
        tables.append(Table(f"{target}: importance of coordinates", columns, rows, how))
        if all(one["drop"] < SURE * one["standard_error"] for one in drops):
            worries.append(f"No coordinate alone is seen to matter for {target}.")
    return Part("Importance of coordinates", worries=worries, bars=bars, details=tables)
