"""What experiments share: points kept on disk, tables, pictures and learners."""

from ...terminal import Callback
from .experiment import (
    Experiment,
    Measure,
    Params,
    Point,
    Result,
    ResultTable,
    Settings,
    counted,
    short_name,
)
from .plots import Curves, GroupedBars, Images, Picture

__all__ = [
    "Callback",
    "Curves",
    "Experiment",
    "GroupedBars",
    "Images",
    "Measure",
    "Params",
    "Picture",
    "Point",
    "Result",
    "ResultTable",
    "Settings",
    "counted",
    "short_name",
]
