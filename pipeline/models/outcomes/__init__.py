"""What a model learns: numbers, classes or densities, with their labels and losses."""
