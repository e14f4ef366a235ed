"""Parameters that are declared as data, not in a signature."""
