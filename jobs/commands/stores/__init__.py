"""Jobs that look after a store."""
