"""Exchange with other programs: the Zarr convention `ragged` and xarray data sets."""
