"""Heads of a model: trees beside the ridge, or in its place."""
