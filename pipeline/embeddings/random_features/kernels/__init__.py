"""Compiled loops of random features: arrays in, `out` written."""
