"""The command line: one thin module a job, configs in, library calls, reports out."""
