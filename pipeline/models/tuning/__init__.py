"""Choosing an embedding, σ and λ by successive halving over a growing number of bags."""
