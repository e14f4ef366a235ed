"""Mutants: the small faults that can be put into a module, each alone.

A mutant is one change of the module's syntax tree: another comparison, another operator, a number
one larger, a condition turned round, a statement or a keyword left out. Annotations, decorators,
texts and the messages of errors are left alone.
"""

from __future__ import annotations

import ast
import copy
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

COMPARISONS = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
OPERATORS = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
LEFT_ALONE = {"annotation", "returns", "decorator_list", "type_params", "bases", "exc", "msg"}
TEXTS = ast.JoinedStr, ast.FormattedValue


@dataclass(frozen=True)
class Mutant:
    """A change of one module.

    Attributes
    ----------
    path : Path
        File of the module.
    line : int
        Line of the change.
    function : str
        Name of the innermost function around it, "" at the module's level.
    change : str
        Source before and after.
    index : int
        Position among the module's mutants.
    """

    path: Path
    line: int
    function: str
    change: str
    index: int

    def rank(self, seed: int) -> bytes:
        """Return a key by which mutants are drawn: it stays when other code changes."""
        name = f"{seed} {self.path.name} {self.function} {self.change}"
        return hashlib.sha256(name.encode()).digest()


@dataclass(frozen=True)
class _Site:
    """A node that can be replaced: ``parent.field``, or its item ``position``."""

    parent: ast.AST
    field: str
    position: int | None
    new: ast.AST | None  # None: the item is left out
    line: int
    function: str

    @property
    def change(self) -> str:
        old = getattr(self.parent, self.field)
        return f"{_text(old if self.position is None else old[self.position])} -> {_text(self.new)}"

    def apply(self) -> None:
        if self.position is None:
            setattr(self.parent, self.field, self.new)
        elif self.new is None:
            del getattr(self.parent, self.field)[self.position]
        else:
            getattr(self.parent, self.field)[self.position] = self.new


def mutants(path: Path) -> list[Mutant]:
    """Return all mutants of a module, in the order of its source."""
    return [
        Mutant(path, site.line, site.function, site.change, i)
        for i, site in enumerate(_sites(ast.parse(path.read_text())))
    ]


def mutated(mutant: Mutant) -> ast.Module:
    """Return the syntax tree of the mutant's module, with its change."""
    tree = ast.parse(mutant.path.read_text())
    list(_sites(tree))[mutant.index].apply()
    return ast.fix_missing_locations(tree)


def _sites(tree: ast.AST, function: str = "") -> Iterator[_Site]:
    if isinstance(tree, ast.FunctionDef | ast.AsyncFunctionDef):
        function = tree.name
    for field, value in ast.iter_fields(tree):
        if field in LEFT_ALONE:
            continue
        for position, node in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if not isinstance(node, ast.AST) or isinstance(node, TEXTS) or _is_for_types(node):
                continue
            for new in _replacements(node):
                line = getattr(node, "lineno", getattr(tree, "lineno", 0))
                yield _Site(tree, field, position, new, line, function)
            yield from _sites(node, function)


def _is_for_types(node: ast.AST) -> bool:
    """Tell whether a statement is for type checkers or lists the names of a module."""
    match node:
        case ast.If(test=ast.Name(id="TYPE_CHECKING")) | ast.Import() | ast.ImportFrom():
            return True
        case ast.Assign(targets=[ast.Name(id="__all__")]):
            return True
    return False


def _replacements(node: ast.AST) -> Iterator[ast.AST | None]:
    """Yield what may stand instead of a node; None: nothing."""
    match node:
        case ast.Compare(ops=[operator]):
            yield _with(node, ops=[COMPARISONS[type(operator)]()])
        case ast.BinOp() | ast.AugAssign():
            operands = (node.left, node.right) if isinstance(node, ast.BinOp) else (node.value,)
            is_text = any(
                isinstance(a, TEXTS) or (isinstance(a, ast.Constant) and isinstance(a.value, str))
                for a in operands
            )
            if type(node.op) in OPERATORS and not is_text:
                yield _with(node, op=OPERATORS[type(node.op)]())
        case ast.BoolOp():
            yield _with(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            yield operand
        case ast.Constant(value=bool() as value):
            yield ast.Constant(not value)
        case ast.Constant(value=int() | float() as value):
            yield ast.Constant(value + 1 if abs(value) < 8 else 2 * value)
        case ast.If() | ast.IfExp() | ast.While():
            yield _with(node, test=ast.UnaryOp(ast.Not(), node.test))
        case ast.Expr(value=ast.Call()) | ast.Raise():
            yield ast.Pass()
        case ast.keyword(arg=str()):
            yield None


def _text(node: ast.AST | None) -> str:
    """Return the source of a node, of a statement with others in it its condition."""
    if isinstance(node, ast.If | ast.While):
        return f"{type(node).__name__.lower()} {ast.unparse(node.test)}"
    return "nothing" if node is None else ast.unparse(node)


def _with(node: ast.AST, **changes: object) -> ast.AST:
    """Return a copy of a node with other fields."""
    new = copy.copy(node)
    for name, value in changes.items():
        setattr(new, name, value)
    return new
