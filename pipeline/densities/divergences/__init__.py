"""Estimated divergences of all pairs of bags, O(N²): kernels for small sets, and as truth."""
