"""A valid call of every public callable of active search, as `examples` has them."""

from __future__ import annotations

import numpy as np
from sklearn.gaussian_process.kernels import RBF

from bagbasis import search
from tests.contract.data_examples import Example, calls
from tests.contract.world import World

PLACES = np.random.default_rng(0).random((5, 1))
REGIONS = [[0, 1, 2], [3, 4]]


def _field() -> search.Field:
    return search.Field(PLACES, RBF(), n_components=2)


def _search(w: World) -> search.PatternSearch:
    return search.PatternSearch(_field(), search.BagRegions(w.classifier, REGIONS, label="a"))


SEARCH_EXAMPLES: dict[str, Example] = {
    "Field": lambda w: (
        lambda **values: search.Field(**values).draw(2),
        {"places": PLACES, "kernel": RBF()},
    ),
    **calls(
        "Field.",
        lambda w: _field(),
        draw={"n_draws": 2},
        observe={"place": 1, "values": [0.1, 0.2]},
        **dict.fromkeys(("check_place", "gain"), lambda w: {"place": 1}),
    ),
    **calls(
        "ProbitRegions.",
        lambda w: search.ProbitRegions,
        of_means={"regions": REGIONS, "n_places": 5, "scale": 10.0, "offset": -1.0},
    ),
    **calls(
        "",
        lambda w: search,
        ProbitRegions={"weights": np.ones((2, 5))},
        BagRegions=lambda w: {"model": w.classifier, "regions": REGIONS, "label": "a"},
    ),
    "PatternSearch": lambda w: (
        lambda **values: search.PatternSearch(**values).suggest(),
        {"field": _field(), "classifier": search.ProbitRegions(np.ones((2, 5, 2)))},
    ),
    **calls("PatternSearch.", _search, suggest={}, observe={"place": 1, "values": [0.1, 0.2]}),
}
