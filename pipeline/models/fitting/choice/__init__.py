"""The embedding that a fit chooses from the data, when none is given."""
