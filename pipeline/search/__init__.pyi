from .field import (
    Field as Field,
)
from .pattern_search import (
    PatternSearch as PatternSearch,
)
from .probit_regions import (
    ProbitRegions as ProbitRegions,
)
from .regions import (
    BagRegions as BagRegions,
    RegionClassifier as RegionClassifier,
)
