"""Outcomes of models: numbers, classes or densities, with their labels and losses."""
