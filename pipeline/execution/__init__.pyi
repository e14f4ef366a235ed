from .blas import (
    add_gram as add_gram,
    add_product as add_product,
    factorise as factorise,
    solve_from_left as solve_from_left,
    solve_from_right as solve_from_right,
)
from .costs import (
    SECONDS_PER_PRODUCT as SECONDS_PER_PRODUCT,
    SPLIT_EVERY as SPLIT_EVERY,
    Cost as Cost,
    PassLimits as PassLimits,
    count_tasks as count_tasks,
    current_limits as current_limits,
    plan_blocks as plan_blocks,
)
from .dask_data.delayed import (
    computed as computed,
)
from .dask_data.frames import (
    shuffle_frames as shuffle_frames,
)
from .homes import (
    Homes as Homes,
    addresses as addresses,
)
from .keepers import (
    Keeper as Keeper,
    KeptState as KeptState,
    StateKeeper as StateKeeper,
)
from .lanes import (
    CORES_VARIABLE as CORES_VARIABLE,
    lane as lane,
    lane_cores as lane_cores,
    one_blas_thread as one_blas_thread,
    use_cores as use_cores,
)
from .lazy_dask import (
    LazyArray as LazyArray,
)
from .memory import (
    available_memory as available_memory,
)
from .notebook import (
    bar_html as bar_html,
    in_notebook as in_notebook,
    watched as watched,
)
from .passes import (
    FEWER_FEATURES as FEWER_FEATURES,
    Collector as Collector,
    Folded as Folded,
    Index as Index,
    RangeTask as RangeTask,
    Reduction as Reduction,
    RowsOfBags as RowsOfBags,
    Source as Source,
    check_memory as check_memory,
    iter_pass as iter_pass,
    lazy_pass as lazy_pass,
    plan_ranges as plan_ranges,
    rows_of as rows_of,
    run_pass as run_pass,
)
from .pool import (
    even_edges as even_edges,
    run_kernel as run_kernel,
    run_parts as run_parts,
    weighted_edges as weighted_edges,
)
from .products import (
    gram_matrix as gram_matrix,
    multiply as multiply,
    multiply_by_triangle as multiply_by_triangle,
)
from .progress import (
    Progress as Progress,
    Report as Report,
    note as note,
    part_of as part_of,
    say as say,
    silent as silent,
)
from .tasks import (
    current_client as current_client,
    lane_memory as lane_memory,
    map_reduce as map_reduce,
    map_tasks as map_tasks,
    task_graph as task_graph,
)
