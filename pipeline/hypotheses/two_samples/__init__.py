"""Statistics of two samples."""
