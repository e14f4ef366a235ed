"""Experiments on kernels and their random features."""
