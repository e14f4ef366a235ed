"""Second basis: random Fourier features of vectors."""

from .fourier import FourierSpec, RandomFourierFeatures

__all__ = ["FourierSpec", "RandomFourierFeatures"]
