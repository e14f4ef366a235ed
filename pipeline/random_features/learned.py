"""`LearnedFourierFeatures`: the second basis whose frequencies are learnt (BaNK; 004, ch. 6)."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import Tags

from ..bags.sampling import spread_rows
from ..errors import DataError, ParameterError
from ..execution import lane
from ..execution.costs import SECONDS_PER_PRODUCT, Cost
from ..execution.passes import check_memory
from ..params import as_array, check_choice, check_integer, check_number, check_seed
from ..sklearn_bases import validated
from .base import Arrays, ArraySpec, Blocks, LabelledSums, RandomFeatures, Sample
from .completion import BegunWhole
from .fourier import complete_sines, name_sines
from .frequencies import draw_frequencies
from .spectral_mixture import FAMILIES, Mixture
from .spectrum_evidence import (
    PENALTIES,
    SpectrumSums,
    accept_in_turn,
    draw_penalty,
    log_evidence,
)

logger = logging.getLogger(__name__)

Floats = NDArray[np.float64]
# Of the width that is given: sweeps begin where the evidence is largest, for from a width that is
# far off they hardly move.
WIDTHS = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0)
MOST_FULL = 100  # inputs; a covariance of more takes more numbers than there are frequencies
MOST_PRIOR = 1e4  # of concentration and tightness: a draw of the mixture takes as many steps
ROWS_PER_BLOCK = 4096  # of `fit`
OF_SWEEPS = 2**62  # key of the sweeps' generator, beyond those of frequencies
NEEDS_LABELS = (
    "learned frequencies follow the labels of what is fitted: they have a fit(X, y) and that of an "
    "estimator; searches, folds and features without labels take another kind of random features"
)


@dataclass(frozen=True, eq=False)
class LearnedSpec(BegunWhole, ArraySpec):
    """Random features of frequencies that are given.

    Attributes
    ----------
    frequencies : float64, shape (n_inputs, n_features / 2)
    scale : float
        The width that learning began with.
    """

    frequencies: Floats
    scale: float

    @property
    def n_inputs(self) -> int:
        """See `FeatureSpec`."""
        return len(self.frequencies)

    @property
    def n_features(self) -> int:
        """See `FeatureSpec`."""
        return 2 * self.frequencies.shape[1]

    @property
    def plain(self) -> object:
        """See `ArraySpec`."""
        return self.scale

    def cost_in(self, precision: str) -> Cost:
        """See `FeatureSpec`."""
        return Cost(
            seconds_per_bag=self.n_features * self.n_inputs * SECONDS_PER_PRODUCT,
            bytes_per_bag=4 * self.n_features,
            bytes_per_task=2 * self.frequencies.nbytes,
        )

    def transform(self, embeddings: NDArray[Any], out: NDArray[Any]) -> None:
        """Write √(2/D) [sin(ωᵀa), cos(ωᵀa)], shape (n, D), in out's dtype."""
        a, omega = (one.astype(out.dtype, copy=False) for one in (embeddings, self.frequencies))
        np.matmul(a, omega, out=out[:, : self.n_features // 2])
        complete_sines(out)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-able description; the digest stands for the frequencies."""
        names = ("n_inputs", "n_features", "scale", "digest")
        return {"name": "learned", **{name: getattr(self, name) for name in names}}

    def arrays(self) -> dict[str, Floats]:
        """See `FeatureSpec`."""
        return {"frequencies": self.frequencies}

    @classmethod
    def array_names(cls) -> tuple[str, ...]:
        """See `FeatureSpec`."""
        return ("frequencies",)

    @classmethod
    def from_dict(cls, values: dict[str, Any], arrays: Arrays) -> LearnedSpec:
        """Make the spec that `to_dict` and `arrays` described; ValueError if they differ."""
        spec = cls(arrays["frequencies"], values["scale"])
        if spec.to_dict() != values:
            raise ValueError("the frequencies are not those that the description is of")
        return spec


class Sweep(NamedTuple):
    """What a sweep has come to.

    Attributes
    ----------
    frequencies : float64, shape (m, d)
        In units of 1/σ.
    mixture : Mixture
    log_evidence : float
        Before the sweep.
    share : float
        Of the frequencies that were exchanged.
    """

    frequencies: Floats
    mixture: Mixture
    log_evidence: float
    share: float


class LearnedFourierFeatures(RandomFeatures):
    """Random Fourier features whose frequencies are learnt from labels (BaNK; 004, ch. 6).

    A Dirichlet-process mixture of Gaussians is the prior of the frequencies, so any stationary
    kernel can be found; a Gibbs sweep draws the mixture, then offers each frequency another, which
    the evidence of a linear model accepts or not. A sweep is one pass over up to ``n_bags`` bags.
    The frequencies of the last sweep are the model's: from then on they are fixed, as those of
    `RandomFourierFeatures` are, and the fit itself is its one pass over all bags.

    It pays where the median distance says little of what matters: few of many coefficients, or
    several lengths. Numbers are learnt by the exact evidence, several targets each with its own
    noise; classes as their indicators, densities as their coefficients.

    Parameters
    ----------
    n_features : even int ≥ 2, default 512
        D; a pass sums products of 2 D features, in double.
    scale : float from 1e-30 to 1e30, or "median"
        σ of the Gaussian kernel that learning begins with. "median": the median distance times
        whichever of ⅛ … 4 has the largest evidence.
    scale_multiplier : float > 0
        Of the median; not used when scale is a number.
    n_sweeps : int ≥ 0
        Passes. 0: the Gaussian kernel.
    n_bags : int ≥ 1, default 100000
        Bags that are learnt from, in evenly spread runs; all, where there are no more.
    covariance : {"diagonal", "full"}
        Of the mixture's components; "full" for up to 100 inputs.
    concentration : float > 0, at most 10,000
        α of the Dirichlet process: about α log D components.
    tightness : float > 0, at most 10,000
        κ₀: their means have 1/κ₀ times their variance.
    seed : int ≥ 0
        Of the frequencies to begin with, and of the sweeps.

    Attributes
    ----------
    spec_ : LearnedSpec
    """

    spec_kind = LearnedSpec
    learns = True

    def __init__(
        self,
        n_features: int = 512,
        scale: float | str = "median",
        scale_multiplier: float = 1.0,
        n_sweeps: int = 20,
        n_bags: int = 100_000,
        covariance: str = "diagonal",
        concentration: float = 1.0,
        tightness: float = 0.1,
        seed: int = 0,
    ) -> None:
        self.n_features = n_features
        self.scale = scale
        self.scale_multiplier = scale_multiplier
        self.n_sweeps = n_sweeps
        self.n_bags = n_bags
        self.covariance = covariance
        self.concentration = concentration
        self.tightness = tightness
        self.seed = seed

    def resolve(
        self,
        n_inputs: int,
        sample: Sample,
        blocks: Blocks = (),
        labelled: LabelledSums | None = None,
    ) -> LearnedSpec:
        """Return the spec that is learnt from ``labelled``.

        Raises
        ------
        ParameterError
            No labels, a parameter that can not be used, a sum of kernels, or sizes that learning
            has no memory for.
        """
        self._check(n_inputs, blocks)
        if labelled is None:
            raise ParameterError(NEEDS_LABELS)
        scale, half = self.resolve_scale(sample, ()), self.n_features // 2
        omega = draw_frequencies("gaussian", n_inputs, half, 1.0, self.seed).T
        if self.scale == "median":
            scale *= self._best_width(omega / scale, labelled)
        for i, sweep in enumerate(self.sweeps(omega, scale, labelled)):
            logger.info(
                "sweep %d: log evidence %.6g, %.0f %% exchanged, %d components",
                *(i + 1, sweep.log_evidence, 100 * sweep.share, len(set(sweep.mixture.labels))),
            )
            omega = sweep.frequencies
        return LearnedSpec(np.ascontiguousarray(omega.T / scale), scale)

    def sweeps(self, omega: Floats, scale: float, labelled: LabelledSums) -> Iterator[Sweep]:
        """Yield sweeps that begin with frequencies ``omega`` (m, d) in units of 1/``scale``."""
        m = len(omega)
        generator = np.random.Generator(np.random.Philox(key=[self.seed, OF_SWEEPS]))
        family = FAMILIES[self.covariance](self.tightness)
        mixture, said = Mixture.begin(family, self.concentration, m), "sweep 1"
        for i in range(self.n_sweeps):
            mixture = mixture.with_components(omega, generator).with_labels(omega, generator)
            proposed, new = mixture.propose(omega, generator)
            both = np.concatenate([omega, new]).T / scale
            found = labelled(LearnedSpec(both, scale), self.n_bags, said)
            sums = found.scaled(2.0)  # of twice as many features they are √½ as large
            with lane():
                penalty, evidence = draw_penalty(sums.of_frequencies(np.arange(m)), generator)
                exchanged = accept_in_turn(sums, penalty, np.log(generator.random(m)))
            omega = np.where(exchanged[:, None], new, omega)
            labels = np.where(exchanged, proposed.labels, mixture.labels)
            mixture = replace(proposed, labels=labels)
            said = f"sweep {i + 2} of {self.n_sweeps}, log evidence {evidence:.6g}"
            yield Sweep(omega, mixture, evidence, float(exchanged.mean()))

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Learn the frequencies from rows of X (n, n_inputs) and numbers y, (n,) or (n, k).

        Raises
        ------
        DataError, ParameterError
            See `resolve`.
        """
        rows = validated(self, X, dtype=[np.float32, np.float64])
        if y is None:
            raise ParameterError(f"y is None: {NEEDS_LABELS}")
        targets = as_array("y", cast(ArrayLike, y), np.float64)
        if targets.shape[:1] != rows.shape[:1] or not np.isfinite(targets).all():
            raise DataError(
                f"y has shape {targets.shape}; expected finite numbers for {len(rows)} rows"
            )
        targets = targets.reshape(len(rows), -1)

        def labelled(spec: LearnedSpec, n_rows: int, said: str) -> SpectrumSums:
            return sum_rows(spread_rows(rows, n_rows), spread_rows(targets, n_rows), spec)

        self.spec_ = self.resolve(rows.shape[1], lambda n: spread_rows(rows, n), (), labelled)
        return self

    def get_feature_names_out(self, input_features: object = None) -> NDArray[Any]:
        """Return the names sin0 … and cos0 …."""
        return name_sines(self)

    def __sklearn_tags__(self) -> Tags:
        """Tell scikit-learn that labels are needed."""
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def _check(self, n_inputs: int, blocks: Blocks) -> None:
        d = check_integer("n_features", self.n_features, 2, even=True)
        check_integer("n_sweeps", self.n_sweeps, 0)
        check_integer("n_bags", self.n_bags)
        check_choice("covariance", self.covariance, FAMILIES)
        check_number("concentration", self.concentration, above=0, most=MOST_PRIOR)
        check_number("tightness", self.tightness, above=0, most=MOST_PRIOR)
        check_seed("seed", self.seed)
        if blocks:
            raise ParameterError("learned frequencies are of one kernel: join='product'")
        if self.covariance == "full" and n_inputs > MOST_FULL:
            raise ParameterError(
                f"covariance='full' takes up to {MOST_FULL} inputs, and there are {n_inputs:,}: "
                "take 'diagonal', or an embedding of fewer coefficients"
            )
        needed = 8 * (4 * (2 * d) ** 2 + 8 * n_inputs * d)
        check_memory(f"learning {d:,} frequencies", needed, "take fewer features")

    def _best_width(self, omega: Floats, labelled: LabelledSums) -> float:
        """Return which multiple of the width the evidence is largest of."""
        found = []
        for width in WIDTHS:
            spec = LearnedSpec(np.ascontiguousarray(omega.T / width), 1.0)
            sums = labelled(spec, self.n_bags, f"width {width:g}")
            found.append(log_evidence(sums, PENALTIES * sums.n).max())
        return WIDTHS[int(np.argmax(found))]


def sum_rows(rows: NDArray[Any], targets: Floats, spec: LearnedSpec) -> SpectrumSums:
    """Return the sums of rows (n, s) and their targets (n, k), in double."""
    d, n = spec.n_features, len(rows)
    total = np.zeros((d + targets.shape[1] + 1,) * 2)
    mean = targets.mean(axis=0)
    for start in range(0, n, ROWS_PER_BLOCK):
        block = slice(start, start + ROWS_PER_BLOCK)
        z = np.empty((len(rows[block]), d))
        spec.transform(rows[block], z)
        columns = np.column_stack([z, targets[block] - mean, np.ones(len(z))])
        total += columns.T @ columns
    total -= np.outer(total[-1], total[-1]) / n
    return SpectrumSums.of(total[:d, :d], total[:d, d:-1], total.diagonal()[d:-1], n)
