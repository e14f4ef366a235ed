"""Readers of data from other libraries and of scientific file formats."""
