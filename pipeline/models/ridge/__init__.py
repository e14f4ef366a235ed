"""Ridge regression from sums: statistics of features, and their solvers."""
