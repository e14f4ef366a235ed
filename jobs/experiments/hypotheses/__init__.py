"""Experiments on tests of hypotheses."""
