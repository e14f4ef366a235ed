"""Dependence as an objective: of coordinates and a target, of sources, of two images.

It is above `hypotheses`, which asks whether variables depend on each other: here the dependence is
what is made large or small. The room imports hypotheses and the rooms below it.
"""

import lazy_loader

__getattr__, __dir__, _ = lazy_loader.attach_stub(__name__, __file__)

__all__ = [
    "DerivativeNorms",
    "IndependentSubspaces",
    "Registration",
    "Selection",
    "derivative_norms",
    "register_images",
    "select_coordinates",
]
