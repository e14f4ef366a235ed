"""Bags in Zarr: created, appended to, changed, verified, and read in ranges of whole bags."""
