"""Components register themselves; those of other packages are found by entry points."""

from __future__ import annotations

import pytest

from bagbasis import ExtremesEmbedding, HDDEmbedding
from bagbasis.core import ComponentRegistry, NameIn
from bagbasis.core.errors import ParameterError
from bagbasis.embeddings import EMBEDDINGS


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
