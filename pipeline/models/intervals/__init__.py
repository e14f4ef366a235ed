"""Intervals of a promised coverage: from bags held out, or from folds."""
