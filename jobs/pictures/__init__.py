"""Every picture that a job draws, and the parts of its page."""
