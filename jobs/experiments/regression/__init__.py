"""Experiments on numbers and classes of bags."""
