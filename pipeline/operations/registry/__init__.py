"""Registry of model versions, with a champion that can be promoted and rolled back."""
