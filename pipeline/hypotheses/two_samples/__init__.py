"""Two-sample test statistics."""
