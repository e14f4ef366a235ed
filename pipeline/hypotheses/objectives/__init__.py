"""Dependence as an objective: selection of coordinates, separation of sources, image registration.

The other modules of `hypotheses` test for dependence; here dependence is maximised or minimised.
"""
