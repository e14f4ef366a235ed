from .coefficients import (
    kernel_arguments as kernel_arguments,
    project as project,
    projection_seconds as projection_seconds,
)
from .function_kernels import (
    FAST as FAST,
    fill_cosine as fill_cosine,
    fill_legendre as fill_legendre,
    fill_trigonometric as fill_trigonometric,
)
from .functions import (
    BASES as BASES,
    BASIS as BASIS,
    MAX_FUNCTIONS as MAX_FUNCTIONS,
    check_basis as check_basis,
    evaluate_basis as evaluate_basis,
    evaluate_series as evaluate_series,
    function_scales as function_scales,
)
from .index_sets import (
    index_set as index_set,
    known_index_set as known_index_set,
    norms as norms,
)
from .projection_kernels import (
    BLOCK as BLOCK,
    load_block as load_block,
)
from .smoothness import (
    KIND as KIND,
    SHAPE as SHAPE,
    Candidates as Candidates,
    LeaveOneOutSums as LeaveOneOutSums,
    choose_bandwidth as choose_bandwidth,
    choose_index_set as choose_index_set,
    damping as damping,
    largest_set as largest_set,
    leave_one_out_sums as leave_one_out_sums,
    limits_of as limits_of,
    series_candidates as series_candidates,
)
