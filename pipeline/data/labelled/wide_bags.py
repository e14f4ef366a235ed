"""Warnings about bags that are much wider than the others and determine the measured box."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from ...core.arrays import Floats, Integers
from ...core.errors import warn
from ..bags.bags import Bags
from ..bags.box import Box, range_of
from ..store.changes import ListedBags
from ..store.plan import Range
from ..store.sampling import RunSample
from .labelled import LABELS_PER_READ, LabelledBags
from .labels import ResponseBags

SAMPLE = RunSample(32, 8)  # 256 bags say how far bags usually reach
_MIN_BAGS = 8  # with fewer bags, no bag is typical
MAX_TIMES_WIDER = 100.0  # times as far as the others: heavy tails rarely reach that
UNNAMED_BAG = "one bag"  # a bag of a store that is not in the sample
_MAX_POINTS_READ = 10_000_000  # points read from a store: some seconds
BAGS_PER_WIDE = 100  # one in so many bags may be among those that are much wider
# Times as far as all labelled bags, whose differences are then a tenth of the box.
MIN_WIDENING = 10.0


def warn_of_wide_bag(source: LabelledBags, box: Box) -> None:
    """Warn about a coordinate whose range in the box comes from bags much wider than the others.

    These bags are unlabelled bags much wider than all labelled bags, or a single bag much wider
    than nearly all other bags.

    Parameters
    ----------
    source : LabelledBags
    box : Box
        The box of all points, in the order of the coordinates of ``source``.
    """
    is_measured = source.in_memory or source.data.meta.is_measured  # type: ignore[union-attr]
    if not is_measured or _is_unit(box):
        return
    if source.labels is not None and _warn_of_unlabelled(source, box):
        return
    places, low, high = _ends(source)
    if len(places) < _MIN_BAGS or _warn_of_code(source, low, high):
        return
    middle = np.median((low + high) / 2, axis=0)
    reach = np.sort(np.maximum(high - middle, middle - low), axis=0)
    usual = reach[-1 - max(1, len(reach) // BAGS_PER_WIDE)]
    lo, hi = np.array(box.lo), np.array(box.hi)
    whole = np.maximum(hi - middle, middle - lo)
    times = np.divide(whole, usual, out=np.zeros_like(whole), where=usual > 0)
    j = int(np.argmax(times))
    if not times[j] > MAX_TIMES_WIDER:
        return
    names = source.coordinate_names
    coordinate = str(j) if names is None else repr(names[j])
    end = float(hi[j] if hi[j] - middle[j] >= middle[j] - lo[j] else lo[j])
    near, far = middle[j] - usual[j], middle[j] + usual[j]
    warn(
        f"{source.url or 'bags in memory'}: {_name(source, places, low, high, j, middle[j])} sets "
        f"the box alone: coordinate {coordinate} reaches {end:.4g}, and nearly all other bags lie "
        f"within {near:.4g} to {far:.4g}, so that their differences are lost; remove that bag, "
        "mend its values, or give the embedding box= for the others"
    )


def _warn_of_code(source: LabelledBags, low: Floats, high: Floats) -> bool:
    """Warn about a value that looks like a code for missing values, such as -9999.

    Such a value is the smallest or the largest value of two or more sampled bags, and far from all
    other values. Returns whether a warning was issued.

    Parameters
    ----------
    source : LabelledBags
    low, high : shape (n_sampled, d)
        Ends of the points of the sampled bags.
    """
    ends = np.stack([low.min(axis=0), high.max(axis=0)])
    n_bags = np.stack([(low == ends[0]).sum(axis=0), (high == ends[1]).sum(axis=0)])
    suspects = np.flatnonzero((n_bags > 1).any(axis=0))
    codes = np.where(n_bags > 1, ends, np.nan)[:, suspects]
    inner = np.full(codes.shape, np.inf) * [[1], [-1]]  # ends of all other values
    for bag in chain.from_iterable(source.sample(SAMPLE)):
        if not len(suspects):
            return False
        points = bag[:, suspects].astype(np.float64, copy=False)
        is_code = (points == codes[:, None]).any(axis=0)
        inner[0] = np.minimum(inner[0], np.where(is_code, np.inf, points).min(axis=0))
        inner[1] = np.maximum(inner[1], np.where(is_code, -np.inf, points).max(axis=0))
        times = _times_beyond(codes, inner)
        may_be_code = (times > MAX_TIMES_WIDER) | (times == 0)  # more bags only widen `inner`
        suspects, codes, inner = suspects[may_be_code], codes[:, may_be_code], inner[:, may_be_code]
    times = _times_beyond(codes, inner)
    if not (times > MAX_TIMES_WIDER).any():
        return False
    place = int(np.argmax(times))
    low_code, high_code = np.where(np.isnan(codes), inner, codes)[:, place]
    least, most = inner[:, place]
    side, j = int(high_code - most > least - low_code), int(suspects[place])
    names = source.coordinate_names
    coordinate = str(j) if names is None else repr(names[j])
    warn(
        f"{source.url or 'bags in memory'}: coordinate {coordinate} is {ends[side, j]:.7g} in "
        f"{n_bags[side, j]} of {len(low)} bags looked at, and all its other values lie within "
        f"{least:.4g} to {most:.4g}: if it is a code for missing values, leave these "
        "points out, or name it in missing_values= where the store is made"
    )
    return True


def _times_beyond(codes: Floats, inner: Floats) -> Floats:
    """Return how far codes lie from the other values, in multiples of half their range.

    The result is 0 where there are not two other values.

    Parameters
    ----------
    codes : shape (2, d)
        Below and above the other values; NaN where there is none.
    inner : shape (2, d)
        Ends of the other values.
    """
    inner = np.where(np.isfinite(inner), inner, 0.0)
    return _reach(*np.where(np.isnan(codes), inner, codes), *inner)


def warn_of_wide_response(source: LabelledBags, box: Box) -> None:
    """Warn about responses of bags of weight 0 that are much wider than all other responses.

    Parameters
    ----------
    source : LabelledBags
        Bags with responses and with their bags of weight 0.
    box : Box
        Box of the embedding of the responses. It is checked only if it is the box of all responses.
    """
    if source.weightless is None or box != source.response_box or _is_unit(box):
        return
    counts = ~source.weightless.members(source.start, source.end)
    wide = _widening(source, box, counts & source.known(source.start, source.end), ~counts)
    if wide is not None:
        names = source.response_names
        coordinate = str(wide.j) if names is None else repr(names[wide.j])
        warn(
            f"{source.url or 'responses in memory'}: {_called(source, wide.place)} has weight 0, "
            f"and its response makes the box of the responses {wide.times:.3g} times wider: "
            f"{wide.clause(coordinate, 'responses that count')}; leave that bag out, or give "
            "response_embedding= a box= for the other responses"
        )


def _warn_of_unlabelled(source: LabelledBags, box: Box) -> bool:
    """Warn about unlabelled bags much wider than all labelled bags; return whether it did."""
    if not source.in_memory and source.n_points > _MAX_POINTS_READ:
        return False
    counts = np.empty(source.n_bags, dtype=bool)
    for first in range(source.start, source.end, LABELS_PER_READ):
        last = min(source.end, first + LABELS_PER_READ)
        counts[first - source.start : last - source.start] = source.known(first, last)
    others = ~counts & source.present()
    if source.weightless is not None:  # which the box does not hold
        is_weightless = source.weightless.members(source.start, source.end)
        counts, others = counts & ~is_weightless, others & ~is_weightless
    points = replace(source, labels=None, weightless=None)
    if not others.any() or not _may_widen(points, box, counts):
        return False
    wide = _widening(points, box, counts, others)
    if wide is None:
        return False
    names = source.coordinate_names
    coordinate = str(wide.j) if names is None else repr(names[wide.j])
    warn(
        f"{source.url or 'bags in memory'}: {_called(source, wide.place)} has no label, and makes "
        f"the box {wide.times:.3g} times wider: {wide.clause(coordinate, 'labelled bags')}; leave "
        "out such bags without a label, or give the embedding box= for the labelled ones"
    )
    return True


@dataclass(frozen=True)
class Widening:
    """A bag that does not count, and the reach of this bag and of all bags that count.

    Attributes
    ----------
    place : int
        Position of the bag.
    j : int
        The coordinate.
    times : float
        Reach of the bag from the middle of the bags that count, in multiples of their reach.
    end, low, high : float
        End of the bag, and range of the bags that count.
    """

    place: int
    j: int
    times: float
    end: float
    low: float
    high: float

    def clause(self, coordinate: str, others: str) -> str:
        """Return the clause of messages that compares the bag with the others."""
        return (
            f"its coordinate {coordinate} reaches {self.end:.4g}, and all {others} lie within "
            f"{self.low:.4g} to {self.high:.4g}, so that their differences are lost"
        )


def _is_unit(box: Box) -> bool:
    return box == Box.unit(box.n_dims)


def _may_widen(source: LabelledBags, box: Box, counts: NDArray[np.bool_]) -> bool:
    """Return whether a sample of the bags that count is narrow, so that others may set the box."""
    places = source.start + np.flatnonzero(counts)
    chosen = [places[a:b] for a, b in SAMPLE.ranges(0, len(places))]
    if not chosen:
        return False
    ranges = [(int(part[0]), int(part[-1]) + 1) for part in chosen]
    low, high, _ = _reached(source, np.concatenate(chosen), ranges)
    return bool((_reach(np.array(box.lo), np.array(box.hi), low, high) > MIN_WIDENING).any())


def _widening(
    source: LabelledBags, box: Box, counts: NDArray[np.bool_], others: NDArray[np.bool_]
) -> Widening | None:
    """Return the bag of ``others`` that widens the box of the bags that count, if one does.

    ``counts`` and ``others`` have shape (n_bags,); the points of these bags are read once.
    """
    if counts.sum() < _MIN_BAGS or not others.any():
        return None
    lo, hi, places = _reached(source, source.start + np.flatnonzero(others))
    low, high, _ = _reached(source, source.start + np.flatnonzero(counts))
    times = _reach(np.maximum(lo, box.lo), np.minimum(hi, box.hi), low, high)
    j = int(np.argmax(times))
    if not times[j] > MIN_WIDENING:
        return None
    side = int(hi[j] - high[j] >= low[j] - lo[j])
    return Widening(
        int(places[side, j]),
        j,
        float(times[j]),
        float((lo, hi)[side][j]),
        float(low[j]),
        float(high[j]),
    )


def _reach(lo: Floats, hi: Floats, low: Floats, high: Floats) -> Floats:
    """Return how far [lo, hi] reach from the middle of [low, high], in multiples of its half.

    If [low, high] is a single value, the result is 0, because there are no differences to lose.
    """
    middle, half = (low + high) / 2, (high - low) / 2
    reach = np.maximum(hi - middle, middle - lo)
    return np.divide(reach, half, out=np.zeros_like(half), where=half > 0)


def _reached(
    source: LabelledBags, places: Integers, ranges: Sequence[Range] | None = None
) -> tuple[Floats, Floats, Integers]:
    """Return the extremes of all points of some bags, and the bags with them, shape (2, d).

    ``ranges`` has all the bags; None: all of the source.
    """
    low = high = np.empty(0)
    bags = np.empty((2, 0), np.int64)
    for index, block in _blocks(source, places, ranges):
        points, starts = block.points.astype(np.float64, copy=False), block.offsets[:-1]
        ends = range_of(points)
        if not low.size:
            low, high = np.full_like(ends[0], np.inf), np.full_like(ends[0], -np.inf)
            bags = np.zeros((2, len(low)), np.int64)
        for j in np.flatnonzero(ends[0] < low):
            row = int(np.argmin(points[:, j]))
            bags[0, j] = index[np.searchsorted(starts, row, side="right") - 1]
        for j in np.flatnonzero(ends[1] > high):
            row = int(np.argmax(points[:, j]))
            bags[1, j] = index[np.searchsorted(starts, row, side="right") - 1]
        low, high = np.minimum(low, ends[0]), np.maximum(high, ends[1])
    return low, high, bags


def _blocks(
    source: LabelledBags, places: Integers, ranges: Sequence[Range] | None
) -> Iterator[tuple[Integers, Bags]]:
    """Yield positions of bags and their points, or those of their responses, part by part."""
    only = replace(source, left_out=None, weightless=None, only=ListedBags(places))
    has_responses = isinstance(source.labels, ResponseBags)
    for batch in only.batches_of([(source.start, source.end)] if ranges is None else ranges):
        bags = batch.labels.present if has_responses else batch.bags
        if len(batch) and bags.n_points:
            yield batch.index, bags


def _called(source: LabelledBags, place: int) -> str:
    """Return the name of a bag in messages."""
    data = source.data
    if isinstance(data, Bags):
        return f"bag {place}" if data.ids is None else f"bag {place} (id {data.ids[place]})"
    return f"bag {place} (id {data.ids(place, place + 1)[0]})"


def _ends(source: LabelledBags) -> tuple[Integers, Floats, Floats]:
    """Return positions of sampled bags, -1 where unknown, and the ends of their points."""
    ends = [range_of(bag) for bag in chain.from_iterable(source.sample(SAMPLE))]
    if not ends:
        return np.empty(0, np.int64), np.empty((0, source.n_dims)), np.empty((0, source.n_dims))
    ranges = SAMPLE.ranges(source.start, source.end)
    places = np.concatenate([np.arange(a, b) for a, b in ranges])
    lows, highs = np.array(ends, np.float64).swapaxes(0, 1)
    known = places if len(places) == len(lows) else np.full(len(lows), -1)
    return known, lows, highs


def _name(
    source: LabelledBags, places: Integers, low: Floats, high: Floats, j: int, middle: float
) -> str:
    """Return the name, in messages, of the widest bag of a coordinate, if it is known."""
    data = source.data
    if source.weightless is not None:
        return UNNAMED_BAG
    if isinstance(data, Bags):
        column = source.ordered(data).points[:, j].astype(np.float64, copy=False)
        row = int(np.argmax(np.abs(column - middle)))
        place = int(np.searchsorted(data.offsets, row, side="right")) - 1
        return _called(source, place)
    reach = np.maximum(high[:, j] - middle, middle - low[:, j])
    widest = int(np.argmax(reach))
    is_sampled = reach[widest] > MAX_TIMES_WIDER / 2 * np.median(reach) and places[widest] >= 0
    if not is_sampled:
        return UNNAMED_BAG
    return _called(source, int(places[widest]))
