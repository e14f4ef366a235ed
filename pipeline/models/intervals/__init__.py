"""Intervals with a guaranteed coverage, from held-out bags or from folds."""
