"""``bags drift fit|test``: a reference that is kept, and what is compared with it."""
