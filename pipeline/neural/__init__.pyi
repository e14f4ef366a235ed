from .bag_density import (
    BagDensity as BagDensity,
)
from .loading import (
    load_network as load_network,
)
from .sequences import (
    NextPointRegressor as NextPointRegressor,
    SequenceClassifier as SequenceClassifier,
    SequenceRegressor as SequenceRegressor,
)
from .set_models import (
    DeepSetsClassifier as DeepSetsClassifier,
    DeepSetsRegressor as DeepSetsRegressor,
)
from .tan import (
    TANDensity as TANDensity,
)
