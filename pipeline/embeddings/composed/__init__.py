"""Embeddings made of other embeddings, or behind a map of the points."""
