"""Orthonormal bases of L2([0, 1]^d): index sets, evaluation and projection."""
