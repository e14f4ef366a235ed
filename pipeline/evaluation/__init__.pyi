from .baselines import (
    judge_fit as judge_fit,
    judge_held_out as judge_held_out,
    judge_means as judge_means,
    judge_with_errors as judge_with_errors,
)
from .coverage import (
    judge_intervals as judge_intervals,
)
from .cross_validation import (
    cross_val_score as cross_val_score,
)
from .importance import (
    Importance as Importance,
    names_of_coordinates as names_of_coordinates,
    permutation_importance as permutation_importance,
)
from .judging import (
    Errors as Errors,
    evaluate as evaluate,
    evaluate_together as evaluate_together,
)
