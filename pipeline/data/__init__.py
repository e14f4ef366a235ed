"""Bags in memory, bags in stores, where stores live, and bags with their labels."""
