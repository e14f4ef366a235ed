"""The kernel smoother: means of labels weighted by distance, without a fit of coefficients."""
