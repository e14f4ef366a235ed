from .base import (
    Layout as Layout,
    Outcome as Outcome,
    Prediction as Prediction,
    Target as Target,
)
from .classes import (
    Classes as Classes,
)
from .densities import (
    Densities as Densities,
)
from .details import (
    ClassDetails as ClassDetails,
    DensityDetails as DensityDetails,
    Details as Details,
    Judged as Judged,
    RealDetails as RealDetails,
    determination as determination,
    weighted_sum as weighted_sum,
)
from .kinds import (
    OUTCOMES as OUTCOMES,
    identify_outcome as identify_outcome,
)
from .reals import (
    Reals as Reals,
)
