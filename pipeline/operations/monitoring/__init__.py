"""Drift tests: compare new bags, or rows, with the data that a model was fitted to."""
