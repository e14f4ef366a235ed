"""What tests of hypotheses can be given, by function; each shows its table as ``PARAMETERS``."""

from __future__ import annotations

from .checks import Table
from .constraints import Boolean, Instance, Integer, None_, OneOf, Open, Real, Seed, Text
from .embeddings import KERNEL
from .random_features import SCALES

MOST_PERMUTATIONS = 10**6  # p-values from 10^-6 on; more take hours where 10^3 take seconds
MOST_LOCATIONS = 4096  # the matrices of NFSIC and FSSD have their square; 5 or 10 are usual
MOST_FEATURES = 65_536  # of random Fourier features and sines: half a megabyte a row

PERMUTATIONS = Integer(1, MOST_PERMUTATIONS)
WIDTH = Real(*SCALES)
DRIFT_STATISTIC = OneOf("fuse", "mmd_u")

TABLES: dict[str, Table] = {
    "two_sample_test": {
        "statistic": Text | Instance("TwoSampleStatistic") | None_,
        "kernel": KERNEL | None_,
        "bandwidth": WIDTH | OneOf("median", "max_mmd", "t", "tau", "ard") | None_,
        "null": Text | None_,
        "n_permutations": PERMUTATIONS,
        "groups": Open("a label per row of each sample, or None"),
        "seed": Seed,
        "unit": OneOf("bag", "point") | None_,
        "embedding": Instance("Embedding") | Instance("EmbeddingSpec") | None_,
        "thin": Boolean | Integer(1),
        "memory": Real(ge=0) | None_,
    },
    "independence_test": {
        "statistic": Text | Instance("DependenceStatistic"),
        "kernel": KERNEL | None_,
        "null": Text | None_,
        "n_permutations": PERMUTATIONS,
        "groups": Open("a label per row, or None"),
        "within": Open("a label per row, or None"),
        "seed": Seed,
    },
    "fit_test": {
        "statistic": Text | Instance("FitStatistic"),
        "bandwidth": WIDTH | OneOf("median"),
        "null": Text | None_,
        "n_draws": PERMUTATIONS,
        "groups": Open("a label per row, or None"),
        "seed": Seed,
    },
}
