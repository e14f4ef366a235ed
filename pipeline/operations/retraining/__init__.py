"""Retraining of models on a growing store, at the cost of reading its new bags only."""
