"""Experiments on networks: sequences, densities in many dimensions, densities of bags."""
