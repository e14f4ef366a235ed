"""Every picture that a job draws."""
