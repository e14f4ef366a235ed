"""Choosing an embedding, σ and λ by successive halving over a growing number of bags.

The room imports monitoring and the rooms below it.
"""

import lazy_loader

__getattr__, __dir__, _ = lazy_loader.attach_stub(__name__, __file__)

__all__ = [
    "Candidate",
    "Lead",
    "Rung",
    "Score",
    "Search",
    "Tuning",
    "tune",
]
