"""Every picture of a job."""
