"""Bags that are Dask objects, and data frames that Dask sorts."""
