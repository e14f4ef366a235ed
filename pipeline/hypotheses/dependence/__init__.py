"""Test statistics for dependence between paired variables."""
