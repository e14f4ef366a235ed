from .base import (
    BLOCK as BLOCK,
    Dataset as Dataset,
)
from .density_mapping import (
    DensityMapping as DensityMapping,
)
from .digits import (
    Digits as Digits,
)
from .dirichlet import (
    Dirichlet as Dirichlet,
)
from .generation import (
    generate as generate,
)
from .gmm_components import (
    GMMComponents as GMMComponents,
)
from .registered import (
    DATASETS as DATASETS,
    make_dataset as make_dataset,
    register_dataset as register_dataset,
)
from .synthetic_mapping import (
    SyntheticMapping as SyntheticMapping,
)
