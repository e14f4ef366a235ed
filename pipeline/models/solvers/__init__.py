"""The solvers of a fit: each module registers one in `SOLVERS`, and is found by its place."""
