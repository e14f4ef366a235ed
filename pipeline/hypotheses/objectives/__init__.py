"""Dependence as an objective: of coordinates and a target, of sources, of two images.

It is above `hypotheses`, which asks whether variables depend on each other: here the dependence is
what is made large or small.
"""
