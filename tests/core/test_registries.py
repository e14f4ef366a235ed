"""Components register themselves; those of other packages are found by entry points."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from bagbasis import ExtremesEmbedding, HDDEmbedding, ParameterError
from bagbasis.core import ComponentRegistry, NameIn
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


@pytest.mark.parametrize("ask", [list, len, lambda registry: registry.short_names])
def test_components_of_other_packages_are_found_by_any_question(ask, tmp_path, monkeypatch):
    """Also where the question names none of them."""
    registry: ComponentRegistry[object] = ComponentRegistry("thing", "bagbasis.things")

    class Others(ModuleType):
        """A module that registers its component when it is loaded."""

        def __getattr__(self, name: str) -> type:
            kind = type(name, (), {})
            registry.add("a", kind, {"short": {}})
            return kind

    metadata = tmp_path / "things-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: things\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[bagbasis.things]\na = things_of_others:A\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, "things_of_others", Others("things_of_others"))
    assert ask(registry) in (["a"], 1, {"short": ("a", {})})
