"""Whether new bags, or rows, are still like those that a model learnt from."""
