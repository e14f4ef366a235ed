"""Predictions for stores: lazy features, blocks, files and densities."""
