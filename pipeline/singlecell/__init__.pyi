from .distances import (
    METHODS as METHODS,
    sample_distances as sample_distances,
)
from .methods import (
    BagbasisSamples as BagbasisSamples,
    BagbasisSupervised as BagbasisSupervised,
)
from .pairs import (
    divergence_blocks as divergence_blocks,
)
from .scores import (
    batch_score as batch_score,
    information_retention as information_retention,
    replicate_robustness as replicate_robustness,
    trajectory_score as trajectory_score,
)
