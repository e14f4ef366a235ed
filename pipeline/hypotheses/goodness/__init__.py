"""Statistics of fit to a law, from its score."""
