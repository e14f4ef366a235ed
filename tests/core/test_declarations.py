"""A parameter is declared once, in a signature: what is derived from it."""

from __future__ import annotations

import inspect
import pickle
import pydoc
from dataclasses import dataclass
from typing import Annotated

import pytest
from sklearn.base import clone

from bagbasis import ParameterError
from bagbasis.core import (
    REQUIRED,
    Boolean,
    Instance,
    Integer,
    None_,
    OneOf,
    Open,
    Real,
    Text,
    checked,
    component,
    constraint_of,
    documented,
    parameters_of,
    plain_signature,
)
from bagbasis.core.declarations import with_fields_of
from bagbasis.core.sklearn_bases import BaseEstimator
from bagbasis.embeddings import EMBEDDINGS, RANDOM_FEATURES

Tail = Annotated[float, Real(gt=0, lt=0.5)]


@component
class Base(BaseEstimator):
    """What several components have.

    Parameters
    ----------
    seed
        Seed for drawing.
    """

    seed: Annotated[int, Integer(0)] = 0


@component
class Extremes(Base):
    """Extremes along directions.

    Parameters
    ----------
    tail : float
        Fraction of the points in a tail. A small one has few points.
    n_directions
        Number of directions.
    """

    tail: Tail = 0.1
    n_directions: Annotated[int, Integer(1)] | None = None
    exact: bool = False


def test_what_is_declared():
    """Own parameters come first; name, constraint, default and description."""
    declared = parameters_of(Extremes)
    assert list(declared) == ["tail", "n_directions", "exact", "seed"]
    tail = declared["tail"]
    assert (tail.accepts, tail.default) == (Real(gt=0, lt=0.5), 0.1)
    assert tail.summary == "Fraction of the points in a tail"
    assert declared["n_directions"].accepts == Integer(1) | None_
    assert declared["seed"].text == "Seed for drawing."


@pytest.mark.parametrize("section", ["", "\n\nParameters\n----------\ntail\n    A share.\n"])
def test_parameters_of_another_class(section):
    """Constraint, default and text come with the name; a text of the class's own stays."""

    class Tails:
        n: int

    Tails.__doc__ = f"Tails.{section}"
    owned = parameters_of(Extremes)
    declared = parameters_of(dataclass(with_fields_of(Extremes, "tail", "n_directions")(Tails)))
    assert list(declared) == ["n", "tail", "n_directions"]
    assert declared["n_directions"] == owned["n_directions"]
    assert declared["tail"].text == ("A share." if section else owned["tail"].text)
    assert declared["tail"].accepts == owned["tail"].accepts
    assert declared["tail"].default == owned["tail"].default
    copied = parameters_of(dataclass(with_fields_of(repeat, "text")(type("Copied", (), {}))))
    assert copied["text"] == parameters_of(repeat)["text"]
    assert copied["text"].default is REQUIRED


def test_a_docstring_has_the_entries_of_inherited_parameters():
    """After its own entries, or in a section of its own; types and defaults are the class's."""

    @component
    class Wide(Extremes):
        """Wide tails.

        Examples
        --------
        >>> Wide()
        """

        tail: Tail = 0.4

    @component
    class Unknown(Extremes):
        pass

    entries = """\
tail : float, default 0.1
    Fraction of the points in a tail. A small one has few points.
n_directions : int ≥ 1, optional
    Number of directions.
seed : int ≥ 0, default 0
    Seed for drawing."""
    title = "Parameters\n----------\n"
    assert Extremes.__doc__ == f"Extremes along directions.\n\n{title}{entries}"
    of_wide = entries.replace("0.1", "0.4")
    examples = "Examples\n--------\n>>> Wide()"
    assert Wide.__doc__ == f"Wide tails.\n\n{title}{of_wide}\n\n{examples}"
    assert "Seed" not in Unknown.__doc__
    assert parameters_of(Unknown)["seed"].text == "Seed for drawing."


def test_an_inherited_entry_has_the_type_and_the_default_of_the_class():
    """Words of the author stay if the annotation is that of the base."""

    @component
    class Base:
        """Base.

        Parameters
        ----------
        n : int of any size
            Number of directions.
        name : word
            Name of the sample.
        """

        n: int = 1
        name: str = "a"

    @component
    class Wider(Base):
        """Wider."""

        n: int = 2
        name: str | None = "b"

    assert "\nn : int of any size, default 1\n" in inspect.getdoc(Base)
    assert "\nn : int of any size, default 2\n    Number of directions.\n" in Wider.__doc__
    assert '\nname : str or None, default "b"\n    Name of the sample.' in Wider().__doc__
    assert pickle.loads(pickle.dumps(vars(Wider)["__doc__"])).__get__(None, Wider) == Wider.__doc__


@pytest.mark.parametrize("kind", [EMBEDDINGS["projection"], Extremes, Base])
def test_help_has_the_types(kind):
    """Classes with a metaclass show them too, although `help` reads their dictionary."""
    shown = pydoc.plain(pydoc.render_doc(kind))
    entries = [line for line in kind.__doc__.splitlines() if ", default " in line]
    assert entries
    assert all(line in shown for line in entries)


def test_a_function_has_the_types_of_its_signature():
    """Names that share an entry get one each if their types differ."""

    @documented
    @checked
    def draw(
        points: list[float],
        *,
        low: Annotated[float, Real(ge=0)] = 0.5,
        high: Annotated[float, Real(ge=0)] = 0.5,
        size: int = 2,
        rows: Annotated[object, Open("rows")] = None,
    ) -> None:
        """Draw points.

        Parameters
        ----------
        points : (n, d)
            Points.
        low, high
            Bounds.
        size, rows
            A shape.

        Raises
        ------
        ValueError
            Never.
        """

    before, _, after = draw.__doc__.partition("low, high : float ≥ 0, default 0.5\n")
    assert before == "Draw points.\n\nParameters\n----------\npoints : (n, d)\n    Points.\n"
    assert after == (
        "    Bounds.\nsize : int, default 2\n    A shape.\nrows\n    A shape.\n\n"
        "Raises\n------\nValueError\n    Never."
    )


def test_an_annotation_that_cannot_be_evaluated_leaves_the_docstring():
    """Another package may have one; `help` shows what its author wrote."""

    @component
    class Broken:
        """Broken.

        Parameters
        ----------
        n
            Number of directions.
        """

        n: Absent = 1  # noqa: F821

    assert Broken.__doc__.endswith("\n        n\n            Number of directions.\n        ")


def test_names_that_only_checkers_import():
    """An instance has the name of its annotated class, which need not be there at run time."""

    def draw(
        dots: Annotated[Dots, Instance()],  # noqa: F821
        model: Annotated[Model[int], Instance()] | None,  # noqa: F821
    ): ...

    declared = parameters_of(draw)
    assert declared["dots"].accepts == Instance("Dots")
    assert declared["model"].accepts == Instance("Model") | None_


def test_a_component_is_an_estimator():
    """The constructor takes keywords alone and only stores; clones and pickles are equal."""
    made = Extremes(tail=0.9, seed=3)
    assert made.get_params() == {"tail": 0.9, "n_directions": None, "exact": False, "seed": 3}
    for again in (clone(made), pickle.loads(pickle.dumps(made))):
        assert again is not made
        assert again.get_params() == made.get_params()
    assert repr(made) == "Extremes(seed=3, tail=0.9)"
    with pytest.raises(TypeError, match="keyword arguments only"):
        Extremes(0.1)
    with pytest.raises(TypeError, match="tale"):
        Extremes(tale=0.1)


def test_people_read_types():
    """A signature for people has no constraints."""
    text = str(plain_signature(Extremes))
    assert text == (
        "(*, tail: float = 0.1, n_directions: int | None = None, exact: bool = False, "
        "seed: int = 0) -> None"
    )


@pytest.mark.parametrize(
    ("annotation", "constraint"),
    [
        (bool, Boolean),
        (None, None_),
        (str | None, Text | None_),
        (Annotated[int, Integer(1)] | bool, Integer(1) | Boolean),
        (Annotated[str, "words that are no constraint"], Text),
        (Tail | Annotated[str, OneOf("auto")] | None, Real(gt=0, lt=0.5) | OneOf("auto") | None_),
        (Annotated[int | None, Integer(1)], Integer(1) | None_),
        (list[int], None),
        (int | list[int], None),
        (inspect.Signature, None),
    ],
)
def test_what_an_annotation_accepts(annotation, constraint):
    assert constraint_of(annotation) == constraint


@checked
def repeat(text: str, n: Annotated[int, Integer(1)], of: Extremes | None = None) -> str:
    """Repeat a text.

    Parameters
    ----------
    text, n
        Value that is repeated, and how often.
    """
    return text * n


def test_a_function_checks_what_its_annotations_say():
    """What they do not say is not checked."""
    assert repeat("a", 2, of=3) == "aa"
    with pytest.raises(ParameterError, match="n is 0; expected an integer ≥ 1"):
        repeat("a", 0)
    declared = parameters_of(repeat)
    assert declared["n"].default is REQUIRED
    assert declared["n"].text == declared["text"].text == "Value that is repeated, and how often."
    assert declared["of"].accepts is None


@pytest.mark.parametrize("kind", [*EMBEDDINGS.values(), *RANDOM_FEATURES.values()])
def test_components_of_the_library(kind):
    """Each parameter is described, and its default is accepted."""
    for name, first in parameters_of(kind).items():
        assert first.text, name
        assert first.accepts is not None, name
        first.accepts.check(name, first.default)
