"""Ranges of bags with labels, for fitting, evaluation and holdouts."""
