"""Choosing an embedding, σ and λ by successive halving over a growing number of bags."""

from .candidates import Candidate
from .halving import tune
from .order import Rung
from .records import Lead, Score, Tuning
from .search import Search

__all__ = ["Candidate", "Lead", "Rung", "Score", "Search", "Tuning", "tune"]
