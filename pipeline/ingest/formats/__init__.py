"""Tables of other libraries, and the files of their fields, handed to the ingest of tables."""
