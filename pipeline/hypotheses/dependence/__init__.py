"""Statistics of dependence between paired variables."""
