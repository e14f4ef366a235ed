from .kernel import (
    DivergenceKernel as DivergenceKernel,
    kernel_matrix as kernel_matrix,
    median_scale as median_scale,
)
from .matrix import (
    divergence_matrix as divergence_matrix,
    median_bandwidth as median_bandwidth,
)
from .repair import (
    PrecomputedNystroem as PrecomputedNystroem,
    PSDRepair as PSDRepair,
)
