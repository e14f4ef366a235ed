"""Ragged sets of points in memory: bags, responses, their boxes and ids."""
