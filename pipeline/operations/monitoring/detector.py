"""`DriftDetector`: test new data for drift from a reference that is kept as a summary."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any, Self

import numpy as np

from ...core import (
    Fraction,
    Instance,
    Integer,
    RandomSeed,
    check_parameters,
    checked,
    component,
)
from ...core.arrays import Floats
from ...core.digits import rounded
from ...core.errors import DataError, ModelError, warn
from ...core.moved import today_names
from ...core.sklearn_bases import BaseEstimator
from ...data.bags.html import html_table
from ...embeddings.base import Embedding, EmbeddingSpec
from ...execution.worker_threads import kernel_threads
from ...hypotheses.declared import Permutations
from ...hypotheses.kernels.scales import MAX_UNITS, Scales
from ...hypotheses.nulls.draws import generator_of
from ...hypotheses.result import LEVEL, HypothesisResult, p_text
from ...hypotheses.two_samples.comparison import MIN_BUCKETS
from ...hypotheses.two_samples.fused import CHOICE_ROWS, fuse_sums
from ...hypotheses.two_samples.unit_sums import UnitSums, plan_units
from .drift import conclusion
from .random_buckets import RandomBuckets
from .reference import Reference, read_reference, write_reference
from .watched import ROWS_PER_READ, StoredBags, Watched, WatchedRows, WatchedSource

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROWS_PER_CHOICE = 4  # one in so many rows of a small reference chooses the bandwidths
KEPT_VALUES = 2**18  # values of single rows of the reference: 2 MiB
N_BUCKETS = 256  # for a reference with more rows: 5 MiB of sums
FREQUENCIES, FREQUENCIES_OF_FEW = 64, 256  # for many rows; for a reference whose rows are all kept


@dataclass(frozen=True, kw_only=True)
class DriftPrediction:
    """Result of `DriftDetector.predict`.

    Attributes
    ----------
    is_drift : bool
        True if ``p_value <= level``.
    p_value : float
        p-value of the test against the reference.
    distance : float
        Test statistic; see `HypothesisResult`.
    threshold : float
        Distance that is exceeded with probability ``level`` if there is no drift.
    level : float, default 0.05
        Level of the detector.

    See Also
    --------
    DriftDetector : Monitor new data against a reference.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> old = [rng.normal(0, 1, (20, 2)) for _ in range(60)]
    >>> new = [rng.normal(0.7, 1, (20, 2)) for _ in range(60)]
    >>> from bagbasis.operations import DriftDetector
    >>> prediction = DriftDetector(n_permutations=199).fit(old).predict(new)
    >>> prediction.p_value < 0.05, bool(prediction.distance > prediction.threshold)
    (True, True)
    """

    is_drift: bool
    p_value: float
    distance: float
    threshold: float
    level: float = LEVEL

    def verdict(self) -> str:
        """Return the conclusion in one sentence."""
        sentence = conclusion(self.is_drift)
        return f"{sentence} (p = {p_text(self.p_value)}, level {self.level:g})."

    def __str__(self) -> str:
        """Return the conclusion, the distance and its threshold."""
        distance, threshold = rounded(self.distance), rounded(self.threshold)
        return f"{self.verdict()} Distance {distance}, threshold {threshold}."

    def plot(self, *, ax: Axes | None = None) -> Axes:
        """Plot the p-value and the level; `plot_drift` plots several predictions over time.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw into. Default: the axes of a new figure.

        Raises
        ------
        DataError
            If matplotlib is not installed (``pip install 'bagbasis[plots]'``).
        """
        from ...plotting.hypothesis_tests import plot_drift  # noqa: PLC0415 - an extra

        return plot_drift([self], ax=ax)

    def _repr_html_(self) -> str:
        """Show the prediction as a table in a notebook."""
        return html_table(
            self.verdict(),
            {"distance": rounded(self.distance), "threshold": rounded(self.threshold)},
        )


@component
class DriftDetector(BaseEstimator):
    """Detect drift of new data from a reference; only a fixed-size summary of it is kept.

    The test is MMD-FUSE (see `two_sample_test`) with ten bandwidths of two kernels and exact
    permutations. The summary takes a few megabytes, whatever the number of rows of the reference.
    To compare two sets of bags only once, use `drift_test`.

    Parameters
    ----------
    embedding : embedding, its spec, or None
        Embedding of bags. Default: a `MeanMapEmbedding`.
    level
        Significance level, which is the false-alarm rate of a test.
    n_permutations
        Number of permutations of each test.
    n_frequencies
        Number of frequencies per width, each with a sine and a cosine; by default 64, or 256 if all
        rows of the reference are kept, because few rows lose power with few frequencies.
    standardize
        Whether each column of points is divided by its standard deviation in the reference. Use
        False if all columns have the same unit of measurement.
    thin
        Number of points to which bags are thinned, or whether they are; see `drift_test`.
    seed
        Random seed.

    Attributes
    ----------
    reference_ : Reference
        Summary of the reference.

    See Also
    --------
    drift_test : Compare two sets of bags.
    DriftPrediction : Result of `DriftDetector.predict`.
    bagbasis.plotting.plot_drift : Plot drift p-values over time.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> old = [rng.normal(0, 1, (20, 2)) for _ in range(60)]
    >>> new = [rng.normal(0.7, 1, (20, 2)) for _ in range(60)]
    >>> from bagbasis.operations import DriftDetector
    >>> detector = DriftDetector(n_permutations=199).fit(old)
    >>> bool(detector.predict(new).is_drift)
    True
    """

    embedding: Annotated[Embedding, Instance()] | Annotated[EmbeddingSpec, Instance()] | None = (
        field(default=None, kw_only=False)
    )
    level: Annotated[float, Fraction] = 0.05
    n_permutations: Permutations = 999
    n_frequencies: Annotated[int, Integer(1, 4096)] | None = None
    standardize: bool = True
    thin: bool | Annotated[int, Integer(1)] = True
    seed: RandomSeed = 0

    # ------------------------------------------------------------------ fit

    def fit(self, reference: Any) -> Self:  # noqa: ANN401 - see below
        """Read a reference once, and keep the summary that later comparisons need.

        Parameters
        ----------
        reference : array (n, d), DataFrame, Bags, list of arrays, BagStore or (store, start, stop)
            Reference data: rows of numbers, or bags. Each row or bag is one unit of the test.

        Raises
        ------
        DataError
            If there are fewer than four rows or bags, a value is not a number, or all rows are
            equal.
        """
        check_parameters(self)
        with kernel_threads():
            watched = Watched.of(reference, self.embedding, self.thin, self.seed)
            self.reference_ = self._kept(watched, watched.read(reference, "reference"))
        return self

    def _kept(self, watched: Watched, source: WatchedSource) -> Reference:
        n = len(source)
        if n < 4:
            raise DataError(f"the reference has {n} rows or bags; a detector needs four")
        n_apart = min(CHOICE_ROWS, n // ROWS_PER_CHOICE)
        apart, rest = self._sampled(source, n_apart)
        unit = np.ones(apart.shape[1])
        if watched.kind == "points" and self.standardize:
            spread = apart.std(axis=0)
            unit = np.where(spread > 0, spread, 1.0)
        n_apart = 0 if isinstance(source, StoredBags) else n_apart
        n_kept = min(n - n_apart, max(MAX_UNITS // 2, KEPT_VALUES // apart.shape[1]))
        all_kept = n_apart + n_kept == n
        n_frequencies = self.n_frequencies or (FREQUENCIES_OF_FEW if all_kept else FREQUENCIES)
        scales = Scales.choose(("gaussian", "laplacian"), apart / unit, n_frequencies, self.seed)
        length = 1 if all_kept else max(1, (n - n_apart) // N_BUCKETS)
        count = 0 if all_kept else N_BUCKETS
        assignment = RandomBuckets(n, n_apart, length, count, self.seed)
        kept_rows = rest(n_apart, n_kept) / unit
        if all_kept:
            fixed = scales.sums(apart / unit, np.zeros(len(apart), np.int64), 1)
            fixed = fixed.reshape(len(scales.kernels), -1)
            empty = np.zeros((len(fixed), 0, fixed.shape[1]))
            return Reference(
                watched, scales, unit, kept_rows, fixed, n_apart, empty, np.zeros(0), 1
            )
        sums, sizes = source.sums(scales, assignment, unit)
        return Reference(
            watched, scales, unit, kept_rows, sums[:, -1], int(sizes[-1]), sums[:, :-1], sizes[:-1],
            length,
        )  # fmt: skip

    def _sampled(
        self, source: WatchedSource, n_apart: int
    ) -> tuple[Floats, Callable[[int, int], Floats]]:
        """Return the rows that bandwidths are chosen on, and the reader of the remaining rows."""
        if isinstance(source, StoredBags):
            assignment = RandomBuckets(len(source), 0, 1, 0, self.seed)
            return source.rows.some(CHOICE_ROWS), lambda _, n: source.first_embeddings(
                assignment, n
            )
        ranks = RandomBuckets(len(source), 0, 1, 0, self.seed).ranks(np.arange(len(source)))
        order = np.argsort(ranks)
        return source.block(np.sort(order[:n_apart])), lambda start, n: source.block(
            np.sort(order[start : start + n])
        )

    # ------------------------------------------------------------------ test

    def test(self, new: Any) -> HypothesisResult:  # noqa: ANN401 - as `fit`
        """Test whether new rows or bags come from the distribution of the reference.

        Parameters
        ----------
        new : as in `fit`
            New data, at least two rows or bags. A DataFrame needs the columns of the reference, in
            any order. A warning names a column that was constant in the reference, and is not now.

        Returns
        -------
        HypothesisResult
            The details have "scales", as in `two_sample_test`. If bags have fewer points than bags
            are thinned to, "bags_left_out_of_new" is the number of these bags.

        Raises
        ------
        DataError
            If the new data are of another kind than the reference, or have other columns or another
            dimension.
        """
        started, reference = perf_counter(), self._fitted()
        with kernel_threads():
            source = reference.watched.read(new, "new")
            if isinstance(source, WatchedRows) and reference.watched.kind == "points":
                _warn_of_constants(reference, source)
            sums, details = self._unit_sums(reference, source)
            if source.n_left_out:
                details["bags_left_out_of_new"] = source.n_left_out
            comparison = fuse_sums(
                sums, reference.scales, sums.permuted(self.n_permutations, self.seed)
            )
        n = {"reference": reference.n_rows, "new": len(source)}
        return replace(comparison, details={**(comparison.details or {}), **details}).result(
            question="drift",
            name="fuse",
            null=comparison.null.name,
            n=n,
            unit="bag" if reference.watched.kind == "bags" else "point",
            n_units=n,
            seed=self.seed,
            seconds=perf_counter() - started,
        )

    def predict(self, new: Any) -> DriftPrediction:  # noqa: ANN401 - as `fit`
        """Decide at the detector's level if new rows or bags have drifted from the reference.

        Returns
        -------
        DriftPrediction
        """
        result = self.test(new)
        threshold = float(np.quantile(result.null_distribution, 1 - self.level))
        return DriftPrediction(
            is_drift=bool(result.p_value <= self.level),
            p_value=result.p_value,
            distance=result.statistic,
            threshold=threshold,
            level=self.level,
        )

    def _unit_sums(
        self, reference: Reference, source: WatchedSource
    ) -> tuple[UnitSums, dict[str, Any]]:
        """Return the sums that are permuted: per row, or per bucket as in the reference."""
        m, n_kept = len(source), len(reference.rows)
        n_buckets = m // reference.length
        if reference.length > 1 and m > n_kept and n_buckets >= MIN_BUCKETS:
            count = min(n_buckets, MAX_UNITS - len(reference.sizes))
            new, sizes = source.sums(
                reference.scales,
                RandomBuckets(m, 0, reference.length, count, self.seed + 1),
                reference.unit,
            )
            own = reference.blocks, reference.sizes, reference.fixed, reference.n_fixed
            return self._joined(reference, *own, new, sizes), {}
        details: dict[str, Any] = {}
        if reference.length > 1 and m > n_kept:
            # between single rows and buckets: as many rows as are kept suffice
            details["new_rows_compared"] = n_kept
            if isinstance(source, StoredBags):
                rows = source.first_embeddings(RandomBuckets(m, 0, 1, 0, self.seed + 1), n_kept)
            else:
                drawn = generator_of(self.seed + 1, "buckets").choice(m, n_kept, replace=False)
                rows = source.block(np.sort(drawn))
            source, m = WatchedRows(rows), len(rows)
        length, (count, n_new) = plan_units(n_kept, m, MAX_UNITS)
        assignments = (
            RandomBuckets(n_kept, 0, length, count, self.seed),
            RandomBuckets(m, 0, length, n_new, self.seed + 1),
        )
        single, sizes = WatchedRows(reference.rows).sums(
            reference.scales, assignments[0], np.ones(len(reference.unit))
        )
        total, n_total = reference.fixed, float(reference.n_fixed)
        if reference.length > 1:  # the rows in buckets less those that are units here
            total = total + reference.blocks.sum(axis=1) - single[:, :-1].sum(axis=1)
            n_total += float(reference.sizes.sum() - sizes[:-1].sum())
        else:
            total, n_total = total + single[:, -1], n_total + float(sizes[-1])
        new, new_sizes = source.sums(reference.scales, assignments[1], reference.unit)
        joined = self._joined(reference, single[:, :-1], sizes[:-1], total, n_total, new, new_sizes)
        return joined, details

    def _joined(
        self, reference: Reference, blocks: Floats, sizes: Floats, fixed: Floats, n_fixed: float,
        new: Floats, new_sizes: Floats,
    ) -> UnitSums:  # fmt: skip
        joined = np.concatenate([blocks, new[:, :-1], fixed[:, None], new[:, -1:]], axis=1)
        all_sizes = np.concatenate([sizes, new_sizes[:-1], [n_fixed], new_sizes[-1:]])
        is_first = np.arange(len(all_sizes) - 2) < len(sizes)
        smaller = int(min(sizes.sum() + n_fixed, new_sizes.sum()))
        return UnitSums.of_blocks(joined, all_sizes, is_first, smaller)

    # ------------------------------------------------------------------ keeping

    @checked
    def save(self, url: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the detector to one file, atomically.

        Parameters
        ----------
        url : str or path
            URL of the file, on any storage that fsspec supports.
        overwrite : bool
            Whether a saved detector at the URL is replaced. Files of other kinds are never
            replaced.

        Raises
        ------
        ModelError
            If the detector is not fitted, or something exists at the URL.
        StoreError
            If the URL cannot be written.
        """
        params = {k: v for k, v in self.get_params(deep=False).items() if k != "embedding"}
        write_reference(url, self._fitted(), params, overwrite)

    @classmethod
    def load(cls, url: str | os.PathLike[str]) -> DriftDetector:
        """Load a saved detector; its tests give bit-identical results.

        Raises
        ------
        ModelError
            If no detector exists at the URL, or the file is damaged or of an unsupported format
            version.
        StoreError
            If the storage cannot be read.
        """

        def make(reference: Reference, params: dict[str, Any]) -> DriftDetector:
            params = today_names(cls.__name__, params)
            detector = cls(reference.watched.spec, **params)
            detector.reference_ = reference
            return detector

        return read_reference(url, make)

    def _fitted(self) -> Reference:
        reference: Reference | None = getattr(self, "reference_", None)
        if reference is None:
            raise ModelError("the detector is not fitted; call fit(reference) first")
        return reference


def _warn_of_constants(reference: Reference, new: WatchedRows) -> None:
    """Warn of a column that is one value in the reference's rows, and another in new rows.

    Such a column has no spread to be divided by, so that it depends on its unit of measurement
    whether the test detects the change.
    """
    places = np.flatnonzero((reference.rows == reference.rows[0]).all(axis=0))
    unit, values = reference.unit[places], reference.rows[0, places]
    changed = np.zeros(len(places), dtype=np.int64)
    for start in range(0, len(new) if len(places) else 0, ROWS_PER_READ):
        block = new.block(slice(start, start + ROWS_PER_READ))[:, places]
        changed += (block / unit != values).sum(axis=0)
    if changed.any():
        at = int(changed.argmax())
        names = reference.watched.columns
        name = repr(names[places[at]]) if names else str(places[at])
        warn(
            f"column {name} is {values[at] * unit[at]:g} in all rows of the reference, and another "
            f"value in {changed[at]:,} of {len(new):,} new rows; the test may not detect this, "
            "because a constant column has no spread: fit to a reference in which it differs"
        )
