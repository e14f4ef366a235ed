"""Kernels of tests, their matrices and their random features."""
