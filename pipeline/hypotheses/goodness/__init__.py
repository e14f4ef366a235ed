"""Goodness-of-fit statistics for a distribution that is given by its score."""
