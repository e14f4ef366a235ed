"""Products of AMX tiles, for machines that have them."""
