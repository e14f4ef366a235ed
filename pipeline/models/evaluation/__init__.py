"""The error of a model on labelled bags: one definition for reports, gates and experiments."""
