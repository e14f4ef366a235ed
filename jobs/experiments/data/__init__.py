"""Data that only experiments need: simulations, mixtures, fields, and files of CIFAR-10."""

from .nbody.dataset import NBody

__all__ = ["NBody"]
