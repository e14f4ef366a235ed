"""The part of a page on the importance of each coordinate."""

from __future__ import annotations

from bagbasis.models import Importance
from bagbasis.plotting.predictions import MAX_BARS

from .charts import Bars
from .parts import Part, Table

_SURE_ERRORS = 2.0  # standard errors by which a drop has to exceed 0


def importance_part(importance: Importance) -> Part:
    """Return a chart of the most important coordinates, and a table of all, for each target."""
    bars, tables, worries = [], [], []
    note = f"± one standard error of {importance.n_groups:,} bags"
    if importance.n_groups < importance.n:
        note = f"± one standard error of {importance.n_groups:,} groups of {importance.n:,} bags"
    how = f"Each bag was given another bag's values, {importance.n_repeats} times; {note}."
    for target, values in importance.values()["targets"].items():
        drops = values["drops"]
        names, heights, spreads = zip(*(drop.values() for drop in drops[:MAX_BARS]), strict=True)
        of = f"drop of {importance.measure}, which is {values['score']:.3g}"
        bars.append(Bars(f"{target}: what each coordinate tells", of, names, heights, spreads, how))
        rows = [[*drop.values()] for drop in drops]
        columns = ["coordinate", f"drop of {importance.measure}", "standard error"]
        tables.append(Table(f"{target}: importance of coordinates", columns, rows, how))
        if all(drop["drop"] < _SURE_ERRORS * drop["standard_error"] for drop in drops):
            worries.append(f"No coordinate alone is seen to matter for {target}.")
    return Part("Importance of coordinates", worries=worries, bars=bars, details=tables)
