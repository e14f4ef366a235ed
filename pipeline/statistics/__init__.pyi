from .gram_products import (
    add_upper as add_upper,
)
from .linear_columns import (
    LINEAR as LINEAR,
    OWN as OWN,
    LinearColumns as LinearColumns,
)
from .moments import (
    MANY_TARGETS as MANY_TARGETS,
    MomentsBuilder as MomentsBuilder,
    RidgeMoments as RidgeMoments,
)
from .rows import (
    RidgeRows as RidgeRows,
    RowsBuilder as RowsBuilder,
    rows_cost as rows_cost,
)
from .statistics_kernels import (
    linear_predictions as linear_predictions,
)
from .summary import (
    Summary as Summary,
)
from .sums import (
    BLOCK_BYTES as BLOCK_BYTES,
    BLOCK_ROWS as BLOCK_ROWS,
    RidgeStatistics as RidgeStatistics,
    StatisticsBuilder as StatisticsBuilder,
    statistics_cost as statistics_cost,
)
