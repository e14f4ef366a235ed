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
from .valid_densities import (
    MOST_DIMS as MOST_DIMS,
    quasi_random_points as quasi_random_points,
)
