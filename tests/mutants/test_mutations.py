"""Mutants are what their module says: one small change each, and nothing of types or texts."""

from __future__ import annotations

import ast

from tests.mutants.mutations import mutants, mutated

SOURCE = '''
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    LIMIT = 3

def clip(x: "float < 2", most: int = 4, *, name="most") -> None:
    """A mean of 5 values."""
    if x is not None and x + 1 > most:
        raise ValueError(f"{x + 1} > {most}")
    total = sum(values, start=0.5)
    total *= -20
    return min(total, "a" + name)
'''
CHANGES = [
    "4 -> 5",
    "if x is not None and x + 1 > most -> if not (x is not None and x + 1 > most)",
    "x is not None and x + 1 > most -> x is not None or x + 1 > most",
    "x is not None -> x is None",
    "x + 1 > most -> x + 1 >= most",
    "x + 1 -> x - 1",
    "1 -> 2",
    "raise ValueError(f'{x + 1} > {most}') -> pass",
    "start=0.5 -> nothing",
    "0.5 -> 1.5",
    "total *= -20 -> total /= -20",
    "-20 -> 20",
    "20 -> 40",
]


def test_each_change_is_one_mutant(tmp_path):
    path = tmp_path / "clip.py"
    path.write_text(SOURCE)
    result = mutants(path)
    assert [mutant.change for mutant in result] == CHANGES
    assert {mutant.function for mutant in result} == {"clip"}
    original = ast.dump(ast.parse(SOURCE))
    trees = {ast.dump(mutated(mutant)) for mutant in result}
    assert len(trees | {original}) == len(result) + 1
    for mutant in result:
        compile(mutated(mutant), "clip.py", "exec")
        assert mutant.line in range(7, 14)


def test_the_draw_stays_when_other_code_changes(tmp_path):
    path = tmp_path / "clip.py"
    path.write_text(SOURCE)
    ranks = [mutant.rank(0) for mutant in mutants(path)]
    path.write_text("LEAST = 2\n" + SOURCE)
    assert [mutant.rank(0) for mutant in mutants(path)][1:] == ranks
    assert [mutant.rank(1) for mutant in mutants(path)][1:] != ranks
