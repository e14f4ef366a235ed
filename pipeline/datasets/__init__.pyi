from .base import (
    BLOCK as BLOCK,
    Block as Block,
    Dataset as Dataset,
    RandomDataset as RandomDataset,
    ResponseBlock as ResponseBlock,
    ResponseDataset as ResponseDataset,
    block_rng as block_rng,
)
from .density_mapping import (
    DensityMapping as DensityMapping,
)
from .digits import (
    MAX_INTENSITY as MAX_INTENSITY,
    SIDE as SIDE,
    Digits as Digits,
)
from .dirichlet import (
    ALPHA_RANGE as ALPHA_RANGE,
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
