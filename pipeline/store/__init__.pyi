from .changes import (
    Changes as Changes,
    ListedBags as ListedBags,
)
from .creation import (
    check_parameters as check_parameters,
    check_place as check_place,
    is_vacant as is_vacant,
)
from .merging import (
    merge_stores as merge_stores,
)
from .plan import (
    Range as Range,
    plan_partitions as plan_partitions,
    ranges_of as ranges_of,
    sample_ranges as sample_ranges,
    split_evenly as split_evenly,
)
from .reading import (
    PARTITION_BYTES as PARTITION_BYTES,
    pair_partitions as pair_partitions,
    partitions as partitions,
    prefetch as prefetch,
    read_runs as read_runs,
)
from .sampling import (
    CHOICE_SAMPLE as CHOICE_SAMPLE,
    DISTANCE_SAMPLE as DISTANCE_SAMPLE,
    JUDGED_SAMPLE as JUDGED_SAMPLE,
    MEDIAN_ROWS as MEDIAN_ROWS,
    RunSample as RunSample,
    median_distance as median_distance,
    median_l1_distance as median_l1_distance,
    spread_rows as spread_rows,
)
from .schema import (
    FILLS as FILLS,
)
from .store import (
    BagStore as BagStore,
)
from .targets import (
    EXACT as EXACT,
    as_numbers as as_numbers,
    beyond_exact as beyond_exact,
    check_integers as check_integers,
    is_missing as is_missing,
    targets_matrix as targets_matrix,
)
from .writer import (
    AppendSession as AppendSession,
)
