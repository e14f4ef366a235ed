"""The command line: one thin module per job. A job reads a config, calls the library, reports."""
