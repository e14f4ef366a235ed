"""A module that cannot be imported."""

raise ImportError("no module named 'left_behind'")
