"""Statistics of fit to a distribution, from its score."""
