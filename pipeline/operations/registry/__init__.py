"""Versions of models, the champion among them, and the way back."""
