"""URLs, files written whole, locks, and the writers of Zarr and Icechunk. Knows nothing of bags."""
