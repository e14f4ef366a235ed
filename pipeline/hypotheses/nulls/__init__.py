"""Distributions of statistics under the null hypothesis: permutations, moments, wild bootstrap."""
