"""Components register themselves; those of other packages are found by entry points."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bagbasis import ExtremesEmbedding, HDDEmbedding
from bagbasis.core import ComponentRegistry, NameIn
from bagbasis.core.errors import ParameterError
from bagbasis.embeddings import EMBEDDINGS

OTHER_PACKAGE = Path(__file__).parent / "example_package"


def test_modules_are_found_by_their_place():
    """No list names them; short names stand for some of the parameters."""
    assert EMBEDDINGS["extremes"] is ExtremesEmbedding
    assert list(EMBEDDINGS) == sorted(EMBEDDINGS)
    made = EMBEDDINGS.make("tv", n_lambdas=2)
    assert isinstance(made, HDDEmbedding)
    assert (made.distance, made.n_lambdas) == ("tv", 2)
    assert {kind.nesting for kind in EMBEDDINGS.values()} == {0, 1, 2, 3, 4}


def test_unknown_names_and_the_nearest_one():
    with pytest.raises(ParameterError, match=r"embedding is 'extreme' \(did you mean 'extremes'"):
        EMBEDDINGS.check("embedding", "extreme")
    with pytest.raises(ParameterError, match="embedding is 3; expected one of"):
        NameIn(EMBEDDINGS).check("embedding", 3)
    assert NameIn(EMBEDDINGS, ("auto",)).check("embedding", "js") == "js"


def test_a_name_belongs_to_one_class():
    registry: ComponentRegistry[object] = ComponentRegistry("thing", "bagbasis.no_such_group")
    first = type("First", (), {})
    registry.add("a", first)
    registry.add("a", first)
    with pytest.raises(ParameterError, match=r"two things are called 'a': .*First and .*Second"):
        registry.add("a", type("Second", (), {}))


def test_components_of_another_package():
    """They are used by name, saved, configured and checked as ours; a broken one is left out."""
    code = f"""
import sys, tempfile, warnings
sys.path.insert(0, {str(OTHER_PACKAGE)!r})
import numpy as np
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    from bagbasis import DoubleBasisRegressor, load_model
    from bagbasis.embeddings import EMBEDDINGS
    assert "centre" in EMBEDDINGS
    assert EMBEDDINGS["moments"].__name__ == "MomentsEmbedding"
texts = sorted(str(one.message) for one in told)
assert "broken" in texts[0] and "update or uninstall wavelets" in texts[0], texts
assert "'moments' of wavelets" in texts[1] and "left out" in texts[1], texts
from bagbasis.core.errors import ParameterError
from bagbasis.jobs.configs.sections import build, named_embedding
section = named_embedding("centre")
assert section.power == 1.0
assert build(section).power == 1.0
bags = list(np.random.default_rng(0).random((30, 5, 2)))
y = np.array([bag.mean() for bag in bags])
model = DoubleBasisRegressor("centre", alpha=1e-3).fit(bags, y)
with tempfile.TemporaryDirectory() as place:
    model.save(place + "/m.zarr")
    again = load_model(place + "/m.zarr")
assert (again.predict(bags) == model.predict(bags)).all()
wide = DoubleBasisRegressor("centre", "wide", alpha=1e-3).fit(bags, y).features_.second
assert wide.scale == 3 * model.features_.second.scale
try:
    EMBEDDINGS["centre"](power=9).fit(bags)
except ParameterError as error:
    assert str(error) == "power is 9; expected a number, 0 < power ≤ 4"
else:
    raise AssertionError
"""
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_statistic_of_another_package():
    code = f"""
import sys, warnings
sys.path.insert(0, {str(OTHER_PACKAGE)!r})
import numpy as np
from bagbasis.core.errors import ParameterError
from bagbasis.hypotheses import TWO_SAMPLE, two_sample_test
rng = np.random.default_rng(0)
a, b = rng.standard_normal((40, 2)), rng.standard_normal((40, 2)) + 2
result = two_sample_test(a, b, statistic="mean_gap", n_permutations=99)
assert result.p_value == 0.01, result
assert result.name == "mean_gap(power=1.0)", result.name
assert "mean_gap" in TWO_SAMPLE and len(TWO_SAMPLE) == 14
try:
    TWO_SAMPLE["mean_gap"](power=0)
except ParameterError as error:
    assert str(error) == "power is 0; expected a number, 0 < power ≤ 4", error
else:
    raise AssertionError
"""
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
