"""Clusters: started, connected to and checked, from a profile or at an address."""

from .connect import connect

__all__ = ["connect"]
