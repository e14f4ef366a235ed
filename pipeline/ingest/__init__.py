"""From tables, arrays and ``.npz`` files to a `BagStore`."""
