from .base import (
    DoubleBasis as DoubleBasis,
    parameters_of as parameters_of,
    with_model as with_model,
)
from .classifier import (
    DoubleBasisClassifier as DoubleBasisClassifier,
)
from .errors import (
    Errors as Errors,
)
from .fit import (
    calibrated as calibrated,
    fit_ridge as fit_ridge,
    make_model as make_model,
)
from .fitted_model import (
    NO_COLUMNS as NO_COLUMNS,
    FittedEstimator as FittedEstimator,
    JudgedModel as JudgedModel,
    MoreColumns as MoreColumns,
    PredictedRows as PredictedRows,
    ScoringModel as ScoringModel,
    model_of as model_of,
    take_subset as take_subset,
)
from .heads.summaries import (
    MomentsAndExtremes as MomentsAndExtremes,
    Summaries as Summaries,
)
from .judging import (
    ROWS_PER_BLOCK as ROWS_PER_BLOCK,
    TOO_LARGE as TOO_LARGE,
    Judge as Judge,
    evaluate as evaluate,
    evaluate_together as evaluate_together,
    find_subset as find_subset,
    judged_data as judged_data,
    judging_cost as judging_cost,
    labelled_for as labelled_for,
)
from .loading import (
    LEAF as LEAF,
    PythonFunction as PythonFunction,
    is_network as is_network,
    load_model as load_model,
    read_network as read_network,
    saved_state as saved_state,
)
from .model_state import (
    ModelState as ModelState,
)
from .predictions.features import (
    features as features,
)
from .predictions.formats import (
    format_of as format_of,
)
from .predictions.stored import (
    PredictedBlock as PredictedBlock,
    iter_predictions as iter_predictions,
    write_predictions as write_predictions,
)
from .regressor import (
    DoubleBasisRegressor as DoubleBasisRegressor,
)
from .ridge_model import (
    RidgeModel as RidgeModel,
)
from .saving import (
    ATTRIBUTE as ATTRIBUTE,
    Saveable as Saveable,
    check_model_place as check_model_place,
    is_of_run as is_of_run,
    read_state as read_state,
    save_model as save_model,
    state_of as state_of,
    write_state as write_state,
)
from .smoothing.smoother import (
    KernelSmoother as KernelSmoother,
)
from .stacking import (
    STACK as STACK,
    choose_head as choose_head,
    with_trees as with_trees,
)
from .streaming_ridge import (
    StreamingRidge as StreamingRidge,
)
from .triple_basis import (
    TripleBasisRegressor as TripleBasisRegressor,
)
