"""Active search for patterns over regions, from observations at points (000, ch. 7)."""

from .field import Field
from .pattern_search import PatternSearch
from .probit_regions import ProbitRegions
from .regions import BagRegions, RegionClassifier

__all__ = ["BagRegions", "Field", "PatternSearch", "ProbitRegions", "RegionClassifier"]
