"""Predictions of stores: lazy features, blocks, files, densities."""
