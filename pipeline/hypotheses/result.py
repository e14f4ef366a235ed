"""`HypothesisResult`: the result of every hypothesis test."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..core import UrlOrPath, checked
from ..core.digits import with_error
from ..core.errors import plural
from ..data.bags.html import html_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes


LEVEL = 0.05  # default significance level: of conclusions in words, and of thresholds in statistics


@dataclass(frozen=True, eq=False, kw_only=True)
class HypothesisResult:
    """Result of a hypothesis test: statistic, p-value, effect size, and how they were computed.

    Attributes
    ----------
    statistic : float
        Test statistic. MMD statistics are squared.
    p_value : float
        Probability under the null hypothesis of a statistic at least as large, in (0, 1].
    standard_error : float
        Standard error of the statistic over new samples of independent units from the same
        distributions; NaN if the statistic has no estimate of its error.
    effect : float
        Effect size: the squared difference, or the dependence, in units of the squared spread
        within the samples. Unlike the statistic and the p-value, it does not depend on the number
        of units. It is about 0 without an effect, and may be slightly negative; NaN if the
        statistic has no effect size.
    null_distribution : float64, shape (n,), ascending
        Values of the statistic under the null hypothesis, from permutations or simulations, or
        equally spaced quantiles of an asymptotic distribution.
    question : str
        Question of the test, for the report: "two samples", "independence", "fit".
    name, null : str
        Names of the statistic and of its null distribution.
    kernel : str
        The kernel with its bandwidth; empty if the statistic has no kernel.
    n : mapping of str to int
        Number of compared rows (points or bags) of each sample.
    unit : str
        Exchangeable or independent unit: "point", "bag" or "group".
    n_units : mapping of str to int
        Number of units of each sample.
    seed : int
        Random seed of the test.
    seconds : float
        Running time in seconds.
    details : mapping
        Further results of some tests, as JSON types: locations and the contribution of each
        location, the split on which a kernel was chosen, the number of bags that were left out.
    sampled_rows : mapping of str to float64, shape (up to about 1,024, d)
        A subset of the rows of each sample, or of each variable (pair by pair), for plots of the
        locations. Empty for statistics without locations. Not in `to_dict`.

    See Also
    --------
    two_sample_test : Compare two samples.
    independence_test : Test for independence.
    fit_test : Test goodness of fit.
    bagbasis.plotting.plot_null : Plot the null distribution of a test.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> a, b = rng.normal(0, 1, (80, 2)), rng.normal(0.8, 1, (80, 2))
    >>> from bagbasis.hypotheses import two_sample_test
    >>> result = two_sample_test(a, b, statistic='energy', n_permutations=99)
    >>> result.name, result.n, result.p_value
    ('energy', {'a': 80, 'b': 80}, 0.01)
    >>> result.pvalue  # SciPy's name for it
    0.01
    >>> result.to_dict()['unit']
    'point'
    """

    statistic: float
    p_value: float
    standard_error: float
    effect: float
    null_distribution: NDArray[np.float64] = field(repr=False)
    question: str
    name: str
    null: str
    kernel: str
    n: Mapping[str, int]
    unit: str
    n_units: Mapping[str, int]
    seed: int
    seconds: float
    details: Mapping[str, Any] = field(default_factory=dict, repr=False)
    sampled_rows: Mapping[str, NDArray[np.float64]] = field(default_factory=dict, repr=False)

    @property
    def pvalue(self) -> float:
        """Same as ``p_value``, under SciPy's name."""
        return self.p_value

    def __str__(self) -> str:
        """Return the `report`, which is what ``print`` shows."""
        return self.report()

    def verdict(self) -> str:
        """Return the conclusion at level 0.05 in one sentence."""
        p = f"p = {p_text(self.p_value)}"
        conclusions = {
            "two samples": ("The samples differ", "No difference of the samples was detected"),
            "independence": ("The variables depend on each other", "No dependence was detected"),
            "fit": ("The data do not follow the model", "No deviation from the model was detected"),
        }
        rejected, accepted = conclusions.get(
            self.question, ("The hypothesis is rejected", "The hypothesis is not rejected")
        )
        return f"{rejected if self.p_value <= LEVEL else accepted} ({p}, level {LEVEL:g})."

    @checked
    def report(self, url: UrlOrPath | None = None) -> str:
        """Return the conclusion and one line per fact; with a URL, also write an HTML report.

        Parameters
        ----------
        url : str or path, optional
            URL of the HTML file, the same report as of ``bags test``. An existing report is
            replaced.

        Raises
        ------
        DataError
            If a URL is given and the extras ``cli`` and ``plots`` are not installed.
        StoreError
            If something other than a report exists at the URL.
        """
        if url is not None:
            from ..jobs.reports import write_test_page  # noqa: PLC0415 - an extra

            write_test_page(self, url)
        lines = self._lines()
        width = max(map(len, lines)) + 2
        rows = (f"{name:<{width}}{text}" for name, text in lines.items())
        return "\n".join([self.verdict(), *rows])

    def _lines(self) -> dict[str, str]:
        rows = ", ".join(
            f"{name} {n:,} {plural('row', n)}"
            + ("" if self.unit == "point" else f" in {self.n_units[name]:,} {self.unit}s")
            for name, n in self.n.items()
        )
        low, middle, high = np.quantile(self.null_distribution, (0.05, 0.5, 0.95))
        lines = {
            "question": self.question,
            "statistic": f"{self.name} = {with_error(self.statistic, self.standard_error)}",
            "p-value": p_text(self.p_value),
            "effect": f"{self.effect:#.2g}" if math.isfinite(self.effect) else "",
            "null": f"{self.null}: 5 % {low:.2g}, median {middle:.2g}, 95 % {high:.2g}",
            "kernel": self.kernel,
            "samples": rows,
            "unit": self.unit,
            **{
                name.replace("_", " "): _in_words(value)
                for name, value in self.details.items()
                if not _has_lists(value)  # too long for a line; `to_dict` has them
            },
            "seed": str(self.seed),
            "seconds": f"{self.seconds:.3g}",
        }
        return {name: text for name, text in lines.items() if text}

    def plot(self, *, ax: Axes | None = None) -> Axes:
        """Plot the null distribution and the statistic; `plot_scales` plots the scales.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw into. Default: the axes of a new figure.

        Raises
        ------
        DataError
            If matplotlib is not installed (``pip install 'bagbasis[plots]'``).
        """
        from ..plotting.hypothesis_tests import plot_null  # noqa: PLC0415 - an extra

        return plot_null(self, ax=ax)

    def _repr_html_(self) -> str:
        """Show the report as a table in a notebook."""
        return html_table(self.verdict(), self._lines())

    def to_dict(self) -> dict[str, Any]:
        """Return the result as a dict of JSON types; unknown numbers are None."""
        values = {name: value for name, value in vars(self).items() if name != "sampled_rows"}
        plain = {
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in values.items()
        }
        return {
            **plain,
            "null_distribution": self.null_distribution.tolist(),
            "n": dict(self.n),
            "n_units": dict(self.n_units),
            "details": dict(self.details),
        }


def p_text(p: float) -> str:
    """Return a p-value with two significant digits, or three decimals."""
    return f"{p:.3f}" if p >= 0.001 else f"{p:.1e}"


def _in_words(value: object) -> str:
    """Return a detail as text: numbers with three digits, counts per sample with its name."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_in_words(part)}" for name, part in value.items())
    if isinstance(value, float):
        return f"{value:.3g}"
    return f"{value:,}" if type(value) is int else str(value)


def _has_lists(value: object) -> bool:
    values = value.values() if isinstance(value, Mapping) else [value]
    return any(isinstance(v, list) for v in values)
