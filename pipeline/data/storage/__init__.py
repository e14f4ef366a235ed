"""URLs, atomic files, locks, and writers of Zarr and Icechunk, independent of bags."""
