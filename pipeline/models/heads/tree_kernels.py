# mypy: disallow-untyped-defs=False
"""The kernel of trees: walks from roots to leaves, and adds what the leaves hold."""

from __future__ import annotations

from ...core.compiling import kernel


@kernel()
def add_trees(begin, end, rows, nodes, values, starts, columns, out):
    """Add the values of the leaf that each row reaches in each tree, in the order of the trees.

    Parameters
    ----------
    begin, end : int
        The rows.
    rows : float32, shape (n, m)
    nodes : float64, shape (n_nodes, 4)
        Column that is compared, threshold, and the nodes for values up to it and above it. In a
        leaf the first is negative, and the third is where its values begin.
    values : float64, shape (n_values,)
    starts : float64, shape (n_trees,)
        The root of each tree.
    columns : float64, shape (n_trees,)
        The column of ``out`` that a tree adds one value to; negative: one value to every column.
    out : float64, shape (n, k), added to
    """
    k = out.shape[1]
    for i in range(begin, end):
        for t in range(len(starts)):
            at = int(starts[t])
            while nodes[at, 0] >= 0:
                if rows[i, int(nodes[at, 0])] <= nodes[at, 1]:
                    at = int(nodes[at, 2])
                else:
                    at = int(nodes[at, 3])
            first, column = int(nodes[at, 2]), int(columns[t])
            if column >= 0:
                out[i, column] += values[first]
            else:
                for j in range(k):
                    out[i, j] += values[first + j]
