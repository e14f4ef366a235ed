"""Tests of hypotheses on points and on bags, with the bag as the unit."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
