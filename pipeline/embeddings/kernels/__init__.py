"""Compiled loops of embeddings: arrays in, `out` written."""
