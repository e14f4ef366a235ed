"""A store as other programs know it: the Zarr convention `ragged`, and datasets of xarray."""
