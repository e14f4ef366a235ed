"""Models that follow a growing store at the cost of its new bags."""
