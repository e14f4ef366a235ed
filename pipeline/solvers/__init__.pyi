from .conjugate_gradients import (
    MOST_STEPS as MOST_STEPS,
    ConjugateGradients as ConjugateGradients,
    Iterate as Iterate,
    Preconditioner as Preconditioner,
)
from .partial_regression import (
    PartialSummary as PartialSummary,
    Rows as Rows,
    beside_linear as beside_linear,
    beside_own as beside_own,
    choose_linear as choose_linear,
)
from .penalties import (
    Path as Path,
    Penalties as Penalties,
    warn_at_edge as warn_at_edge,
)
from .product_kernels import (
    STRIPES as STRIPES,
    row_products as row_products,
)
from .ridge import (
    RidgeSolution as RidgeSolution,
    as_solution as as_solution,
    check_held_out as check_held_out,
    check_rows as check_rows,
    relative_error as relative_error,
    rows_serve as rows_serve,
    score_validation as score_validation,
    solve as solve,
    solve_bytes as solve_bytes,
    solve_each as solve_each,
    solve_folds as solve_folds,
    solve_gcv as solve_gcv,
    solve_judged as solve_judged,
    solve_validation as solve_validation,
)
from .solver_choice import (
    LEAST_PENALTY as LEAST_PENALTY,
    check_solver as check_solver,
    fits_exactly as fits_exactly,
    gradients_pay as gradients_pay,
)
