# mypy: disallow-untyped-defs=False
"""The kernel of intervals from folds: the r-th smallest of sums of predictions and errors."""

from __future__ import annotations

from ...core.compiling import kernel, subkernel

_MAX_HALVINGS = 2200  # more than there are between any two doubles


@subkernel(inline="always")
def _end(centre, scale, errors, edges, fold, value):
    """Find where the errors of a fold end whose scaled sums are at most ``value``."""
    low, high = edges[fold], edges[fold + 1]
    while low < high:
        middle = (low + high) // 2
        if centre + scale * errors[middle] <= value:
            low = middle + 1
        else:
            high = middle
    return low


@subkernel(inline="always")
def _count(sign, centres, scales, errors, edges, value):
    """Count the sums sign · centre + scale · error that are at most ``value``, over all folds."""
    n_below = 0
    for fold in range(len(centres)):
        end = _end(sign * centres[fold], scales[fold], errors, edges, fold, value)
        n_below += end - edges[fold]
    return n_below


@subkernel(inline="always")
def _largest(sign, centres, scales, errors, edges, value):
    """Find the largest sum that is at most ``value``; there is one."""
    largest, is_known = value, False
    for fold in range(len(centres)):
        centre = sign * centres[fold]
        low = _end(centre, scales[fold], errors, edges, fold, value)
        if low > edges[fold]:
            last = centre + scales[fold] * errors[low - 1]
            if not is_known or last > largest:
                largest, is_known = last, True
    return largest


@kernel()
def interval_ends(begin, end, predicted, scales, errors, edges, rank, lower, upper):
    """Write the ends of intervals from folds (Barber et al. 2021, §2.2 and §3).

    With predictions μ_f, scales s_f and absolute errors r_j, in units of the scale, of the bags of
    fold f, the upper end is the rank-th smallest of all μ_f + s_f r_j, the lower one that of
    μ_f − s_f r_j from above. A bracket around it is halved until it holds one of them.

    Parameters
    ----------
    begin, end : int
        The bags.
    predicted : float64, shape (n, k, K)
        Predictions of k targets by the models of K folds.
    scales : float64, shape (n, k, K)
        Above 0.
    errors : float64, shape (k, m)
        Ascending within each fold.
    edges : int64, shape (K + 1,)
        Where the errors of each fold begin and end.
    rank : int from 1 to m
    lower, upper : float64, shape (n, k), written
    """
    for i in range(begin, end):
        for t in range(errors.shape[0]):
            for side in range(2):
                sign = 1.0 if side else -1.0
                centres, own = predicted[i, t], errors[t]
                widths = scales[i, t]
                least, most, is_known = 0.0, 0.0, False
                for fold in range(len(centres)):
                    if edges[fold] < edges[fold + 1]:
                        first = sign * centres[fold] + widths[fold] * own[edges[fold]]
                        last = sign * centres[fold] + widths[fold] * own[edges[fold + 1] - 1]
                        least = min(least, first) if is_known else first
                        most = max(most, last) if is_known else last
                        is_known = True
                n_least = _count(sign, centres, widths, own, edges, least)
                if n_least >= rank:
                    most = least
                n_most = errors.shape[1]
                for _ in range(_MAX_HALVINGS):
                    middle = 0.5 * least + 0.5 * most
                    if n_most - n_least <= 1 or not least < middle < most:
                        break
                    n_middle = _count(sign, centres, widths, own, edges, middle)
                    if n_middle >= rank:
                        most, n_most = middle, n_middle
                    else:
                        least, n_least = middle, n_middle
                limit = _largest(sign, centres, widths, own, edges, most)
                if side:
                    upper[i, t] = limit
                else:
                    lower[i, t] = -limit
