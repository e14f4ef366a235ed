"""Second basis: random features of vectors."""
