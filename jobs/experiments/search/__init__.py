"""Experiments on where to observe next."""
