from .accumulate import (
    FitStatistics as FitStatistics,
    FoldSums as FoldSums,
    SplitSums as SplitSums,
)
from .bag_noise import (
    bag_variances as bag_variances,
)
from .checkpoints import (
    Checkpoints as Checkpoints,
    CheckpointsLike as CheckpointsLike,
    checkpoints_of as checkpoints_of,
)
from .choice.automatic import (
    Choice as Choice,
    choose_embedding as choose_embedding,
)
from .choice.fold_errors import (
    FoldRows as FoldRows,
)
from .choice.sample import (
    fold_rows as fold_rows,
)
from .choice.short_list import (
    short_list as short_list,
)
from .feature_map import (
    MUCH_OUTSIDE as MUCH_OUTSIDE,
    ROWS_PER_BLOCK as ROWS_PER_BLOCK,
    SECOND_BASIS as SECOND_BASIS,
    FeatureMap as FeatureMap,
    in_embedded_order as in_embedded_order,
    resolve_features as resolve_features,
    sampled_embeddings as sampled_embeddings,
    warn_of_outside as warn_of_outside,
    warn_of_scale as warn_of_scale,
)
from .fit_parameters import (
    AUTO as AUTO,
    FitParameters as FitParameters,
    PenaltiesLike as PenaltiesLike,
    is_summed as is_summed,
)
from .matrix_free import (
    MatrixFreeFit as MatrixFreeFit,
)
from .partials import (
    read_arrays as read_arrays,
    read_partial as read_partial,
    write_arrays as write_arrays,
    write_partial as write_partial,
)
from .plan import (
    FitPlan as FitPlan,
    FitSums as FitSums,
)
from .planning import (
    check_summable as check_summable,
    choose_columns as choose_columns,
    choose_features as choose_features,
    decide_automatic as decide_automatic,
    plan_fit as plan_fit,
    plan_of as plan_of,
    takes_gradients as takes_gradients,
)
from .problem import (
    Groups as Groups,
    Labels as Labels,
    Problem as Problem,
    TrainingBags as TrainingBags,
    pose_problem as pose_problem,
)
from .solving import (
    leave_baseline as leave_baseline,
    solve_fit as solve_fit,
)
