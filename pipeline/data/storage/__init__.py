"""URLs, files written whole, locks, and writers of Zarr and Icechunk. Knows nothing of bags."""
