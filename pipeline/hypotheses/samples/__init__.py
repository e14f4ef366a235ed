"""Samples that tests are computed of: points or bags, from memory or a store."""
