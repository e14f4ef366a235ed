"""A package of somebody else, which adds an embedding and a statistic."""
