from .classifier import (
    DoubleBasisClassifier as DoubleBasisClassifier,
)
from .errors import (
    Errors as Errors,
)
from .evaluation.baselines import (
    judge_fit as judge_fit,
)
from .evaluation.cross_validation import (
    cross_val_score as cross_val_score,
)
from .evaluation.importance import (
    Importance as Importance,
    permutation_importance as permutation_importance,
)
from .explain import (
    Explanation as Explanation,
    explain as explain,
)
from .fitting.checkpoints import (
    Checkpoints as Checkpoints,
)
from .judging import (
    evaluate as evaluate,
)
from .loading import (
    load_model as load_model,
)
from .predictions.features import (
    features as features,
)
from .predictions.reading import (
    read_predictions as read_predictions,
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
    save_model as save_model,
)
from .smoothing.smoother import (
    KernelSmoother as KernelSmoother,
)
from .streaming_ridge import (
    StreamingRidge as StreamingRidge,
)
from .triple_basis import (
    TripleBasisRegressor as TripleBasisRegressor,
)
from .tuning.candidates import (
    Candidate as Candidate,
)
from .tuning.halving import (
    tune as tune,
)
from .tuning.order import (
    Rung as Rung,
)
from .tuning.records import (
    Lead as Lead,
    Score as Score,
    Tuning as Tuning,
)
from .tuning.search import (
    Search as Search,
)
