from .divergences.kernel import (
    DivergenceKernel as DivergenceKernel,
    kernel_matrix as kernel_matrix,
    median_scale as median_scale,
)
from .divergences.matrix import (
    divergence_matrix as divergence_matrix,
    median_bandwidth as median_bandwidth,
)
from .divergences.repair import (
    PrecomputedNystroem as PrecomputedNystroem,
    PSDRepair as PSDRepair,
)
from .estimate import (
    estimate_densities as estimate_densities,
)
from .exponential_family import (
    ExponentialFamilyDensity as ExponentialFamilyDensity,
    Width as Width,
)
from .kernel_density import (
    kde_at as kde_at,
)
from .leave_one_out import (
    Smoothness as Smoothness,
    choose_smoothness as choose_smoothness,
)
from .series import (
    Densities as Densities,
)
