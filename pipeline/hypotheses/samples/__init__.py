"""Samples for tests: points or bags, from memory or from a store."""
