"""Experiments on responses that are densities."""
