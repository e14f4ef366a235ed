"""`LearnedFourierFeatures`: random features with learned frequencies (Oliva 2018, ch. 6)."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Annotated, Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import Tags

from ...core import Integer, OneOf, Real, check_parameters
from ...core.arrays import Floats, as_array
from ...core.errors import DataError, ParameterError
from ...core.sklearn_bases import validated
from ...data.labelled.labelled import ROWS_PER_BLOCK
from ...data.store.sampling import spread_rows
from ...execution.checkpoint_stores import CheckpointedState, StateCheckpoints
from ...execution.passes import check_memory
from ...execution.worker_threads import kernel_threads
from .base import Blocks, FeatureSpec, LabelledSums, RandomFeatures, SampleRows
from .fourier import RandomFourierFeatures, name_sines
from .frequencies import draw_frequencies
from .learned_spec import LearnedSpec
from .registered import random_features
from .spectral_mixture import FAMILIES, Mixture
from .spectrum_evidence import (
    ROW_PENALTIES,
    SpectrumSums,
    accept_in_turn,
    draw_penalty,
    log_evidence,
)

logger = logging.getLogger(__name__)

# Multiples of the given width. Sweeps start from the multiple with the largest evidence, because
# they hardly change a poor width.
_MEDIAN_FACTORS = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0)
MAX_FULL_INPUTS = 100  # with more inputs, a covariance has more entries than frequencies
# Fields of a generator's state, in addition to its arrays.
STATE_KEYS = ("buffer_pos", "has_uint32", "uinteger")
SWEEP = "sweep"  # name of a checkpoint
SWEEP_KEYS = 2**62  # key of the generator for sweeps, larger than keys of frequencies
NEEDS_LABELS = (
    "learned frequencies follow the labels of what is fitted: they have a fit(X, y) and that of an "
    "estimator; features without labels take another kind of random features"
)

MAX_PRIOR = 1e4  # bound of concentration and tightness: a draw of the mixture takes as many steps


@dataclass(frozen=True, eq=False)
class Sweep(CheckpointedState):
    """State after a number of sweeps, on which the next sweep depends.

    Attributes
    ----------
    number : int
        Number of sweeps so far.
    frequencies : float64, shape (m, d)
        Frequencies in units of 1/scale.
    labels : int64, shape (m,)
        Component of the mixture for each frequency.
    scale : float
        Width of the kernel from which learning started.
    log_evidence : float
        Log evidence before the last sweep.
    generator : uint64, shape (13,)
        State of the random generator; see `_pack`.
    """

    number: int
    frequencies: Floats
    labels: NDArray[np.int64]
    scale: float
    log_evidence: float
    generator: NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """`LabelledSums` of rows (n, s) and targets (n, k) in float64."""

    rows: NDArray[Any]
    targets: Floats
    checkpoint_store: StateCheckpoints | None = None

    def __call__(self, spec: FeatureSpec, n_rows: int, stage: str) -> SpectrumSums:
        """Return the centred sums."""
        rows, targets = (spread_rows(x, n_rows) for x in (self.rows, self.targets))
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


@random_features("learned", LearnedSpec)
class LearnedFourierFeatures(RandomFeatures):
    """Random Fourier features whose frequencies are learned from labels.

    The prior of the frequencies is a Dirichlet-process mixture of Gaussians, which can represent
    any stationary kernel. A Gibbs sweep draws the mixture and then proposes a new value for each
    frequency. The proposal is accepted or rejected by the evidence of a linear model. A sweep is
    one pass over up to ``n_bags`` bags. After the last sweep, the frequencies are fixed like those
    of `RandomFourierFeatures`, and the model is fitted in one pass over all bags.

    Use it if the median distance is a poor width: if only a few of many coefficients matter, or
    several length scales matter. Learning uses the exact evidence of numeric targets, each with its
    own noise level. Classes are represented by indicators, densities by coefficients.

    Parameters
    ----------
    n_features
        Number D of features. A pass sums products of 2 D features in float64.
    scale
        Width σ of the Gaussian kernel from which learning starts. "median" is the median distance
        times the factor from ⅛ to 4 with the largest evidence.
    scale_multiplier
        Factor that multiplies the median; not used if scale is a number.
    n_sweeps
        Number of sweeps, which are passes over the data. 0 keeps the Gaussian kernel.
    n_bags
        Largest number of bags to learn from, in evenly spread runs.
    covariance
        Type of covariance of the components of the mixture. "full" needs at most 100 inputs.
    concentration
        Concentration α of the Dirichlet process, which gives about α log D components.
    tightness
        Parameter κ₀ of the prior. The variance of the means of the components is 1/κ₀ times the
        variance within components.
    seed
        Seed for drawing the initial frequencies, and for the sweeps.

    Attributes
    ----------
    spec_ : LearnedSpec
        The fitted random features.

    See Also
    --------
    RandomFourierFeatures : Random Fourier features of embeddings.
    NystroemFeatures : Kernel features from landmark bags.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(0.5, 2.0, 80)
    >>> X = [rng.normal(0, s, (30, 2)) for s in y]
    >>> from bagbasis import DoubleBasisRegressor, LearnedFourierFeatures
    >>> features = LearnedFourierFeatures(n_features=32, n_sweeps=2)
    >>> model = DoubleBasisRegressor('moments', features, alpha='gcv').fit(X, y)
    >>> model.coef_.shape
    (32,)
    """

    n_features: Annotated[int, Integer(2, even=True)] = 512
    n_sweeps: Annotated[int, Integer(0, 10_000)] = 20
    n_bags: Annotated[int, Integer(1)] = 100_000
    covariance: Annotated[str, OneOf("diagonal", "full")] = "diagonal"
    concentration: Annotated[float, Real(gt=0, le=MAX_PRIOR)] = 1.0
    tightness: Annotated[float, Real(gt=0, le=MAX_PRIOR)] = 0.1
    learns = True

    def resolve(
        self,
        n_inputs: int,
        sample: SampleRows,
        blocks: Blocks = (),
        labelled: LabelledSums | None = None,
    ) -> LearnedSpec:
        """Return the spec that is learned from ``labelled``.

        Raises
        ------
        ParameterError
            If there are no labels, a parameter has a value that is not allowed, ``blocks`` define a
            sum of kernels, or learning does not fit in memory.
        """
        self._check(n_inputs, blocks)
        if labelled is None:
            raise ParameterError(NEEDS_LABELS)
        saved = labelled.checkpoint_store.load(SWEEP) if labelled.checkpoint_store else None
        sweep = self._begin(n_inputs, sample, labelled) if saved is None else Sweep.of(saved)
        while sweep.number < self.n_sweeps:
            sweep = self._kept(self._next(sweep, labelled), labelled)
        frequencies = np.ascontiguousarray(sweep.frequencies.T / sweep.scale)
        return LearnedSpec(frequencies, sweep.scale)

    def for_comparison(self, n_inputs: int, blocks: Blocks) -> RandomFourierFeatures:
        """Return the features for comparing embeddings and widths without using labels.

        They are the same number of features of the Gaussian kernel from which learning starts.

        Raises
        ------
        ParameterError
            If a parameter has a value that is not allowed, see `resolve`.
        """
        self._check(n_inputs, blocks)
        return RandomFourierFeatures(
            n_features=self.n_features,
            scale=self.scale,
            scale_multiplier=self.scale_multiplier,
            seed=self.seed,
        )

    def _begin(self, n_inputs: int, sample: SampleRows, labelled: LabelledSums) -> Sweep:
        """Return the state before the first sweep: frequencies of a Gaussian kernel."""
        scale, m = self.resolve_scale(sample, ()), self.n_features // 2
        omega = draw_frequencies("gaussian", n_inputs, m, 1.0, self.seed).T
        if self.scale == "median":
            scale *= self._best_width(omega / scale, labelled)
        generator = _pack(np.random.Philox(key=[self.seed, SWEEP_KEYS]))
        begun = Sweep(0, omega, np.zeros(m, np.int64), scale, -np.inf, generator)
        return self._kept(begun, labelled)

    def _kept(self, sweep: Sweep, labelled: LabelledSums) -> Sweep:
        if labelled.checkpoint_store:
            labelled.checkpoint_store.save(SWEEP, sweep.arrays())
        return sweep

    def _next(self, sweep: Sweep, labelled: LabelledSums) -> Sweep:
        """Return the state after one more sweep, which is a pass over the data."""
        omega, m = sweep.frequencies, len(sweep.frequencies)
        generator = _unpack(sweep.generator)
        family = FAMILIES[self.covariance](self.tightness)
        mixture = Mixture(family, self.concentration, sweep.labels, [], [])
        mixture = mixture.with_components(omega, generator).with_labels(omega, generator)
        proposed, new = mixture.propose(omega, generator)
        both = np.concatenate([omega, new]).T / sweep.scale
        stage = f"sweep {sweep.number + 1} of {self.n_sweeps}"
        if sweep.number:
            stage += f", log evidence {sweep.log_evidence:.6g}"
        evidence_sums = labelled(LearnedSpec(both, sweep.scale), self.n_bags, stage)
        sums = evidence_sums.scaled(2.0)  # twice as many features are each √½ as large
        with kernel_threads():
            penalty, evidence = draw_penalty(sums.of_frequencies(np.arange(m)), generator)
            exchanged = accept_in_turn(sums, penalty, np.log(generator.random(m)))
        labels = np.where(exchanged, proposed.labels, mixture.labels)
        logger.info(
            "sweep %d: log evidence %.6g, %.0f %% exchanged, %d components",
            *(sweep.number + 1, evidence, 100 * exchanged.mean(), len(np.unique(labels))),
        )
        omega = np.where(exchanged[:, None], new, omega)
        state = _pack(generator.bit_generator)
        return Sweep(sweep.number + 1, omega, labels, sweep.scale, evidence, state)

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Learn the frequencies from rows of X (n, n_inputs) and numbers y, (n,) or (n, k).

        Raises
        ------
        DataError
            If y has a wrong shape or values that are not finite.
        ParameterError
            If y is None or `resolve` raises this error.
        """
        rows = validated(self, X, dtype=[np.float32, np.float64])
        if y is None:
            raise ParameterError(
                f"{type(self).__name__} requires y to be passed, but the target y is None: "
                f"{NEEDS_LABELS}"
            )
        targets = as_array("y", cast(ArrayLike, y), np.float64)
        if targets.shape[:1] != rows.shape[:1] or not np.isfinite(targets).all():
            raise DataError(
                f"y has shape {targets.shape}; expected finite numbers for {len(rows)} rows"
            )
        labelled = LabelledRows(rows, targets.reshape(len(rows), -1))
        self.spec_ = self.resolve(rows.shape[1], lambda n: spread_rows(rows, n), (), labelled)
        return self

    def get_feature_names_out(self, input_features: object = None) -> NDArray[Any]:
        """Return the names sin0 … and cos0 …."""
        return name_sines(self)

    def __sklearn_tags__(self) -> Tags:
        """Return scikit-learn's tags: labels are required."""
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def _check(self, n_inputs: int, blocks: Blocks) -> None:
        check_parameters(self)
        d = self.n_features
        if blocks:
            raise ParameterError("learned frequencies are of one kernel: join='product'")
        if self.covariance == "full" and n_inputs > MAX_FULL_INPUTS:
            raise ParameterError(
                f"covariance='full' takes up to {MAX_FULL_INPUTS} inputs, and there are "
                f"{n_inputs:,}: take 'diagonal', or an embedding of fewer coefficients"
            )
        needed = 8 * (4 * (2 * d) ** 2 + 8 * n_inputs * d)
        check_memory(f"learning {d:,} frequencies", needed, "take fewer features")

    def _best_width(self, omega: Floats, labelled: LabelledSums) -> float:
        """Return the multiple of the width with the largest evidence."""
        evidences = []
        for width in _MEDIAN_FACTORS:
            spec = LearnedSpec(np.ascontiguousarray(omega.T / width), 1.0)
            sums = labelled(spec, self.n_bags, f"width {width:g}")
            evidences.append(log_evidence(sums, ROW_PENALTIES * sums.n).max())
        return _MEDIAN_FACTORS[int(np.argmax(evidences))]


def _pack(generator: np.random.BitGenerator) -> NDArray[np.uint64]:
    """Return the state of a Philox generator: counter, key, buffer and three numbers."""
    state: Any = generator.state
    rest = [state[name] for name in STATE_KEYS]
    parts = (state["state"]["counter"], state["state"]["key"], state["buffer"], rest)
    return np.concatenate([np.asarray(part, np.uint64) for part in parts])


def _unpack(packed: NDArray[np.uint64]) -> np.random.Generator:
    """Return the generator whose state `_pack` returned."""
    philox = np.random.Philox()
    counter, key, buffer, rest = np.split(packed, [4, 6, 10])
    state: Any = {
        "bit_generator": "Philox",
        "state": {"counter": counter, "key": key},
        "buffer": buffer,
        **dict(zip(STATE_KEYS, rest.tolist(), strict=True)),
    }
    philox.state = state
    return np.random.Generator(philox)
