"""The command line: one thin module a job, configs in, pipeline calls, reports out."""
