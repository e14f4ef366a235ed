"""Data that only experiments need: simulations, patches, mixtures, and files of CIFAR-10."""

from .nbody import NBody

__all__ = ["NBody"]
