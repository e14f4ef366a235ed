"""Heads of a model: trees together with the ridge, or instead of it."""
