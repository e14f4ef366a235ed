"""The papers' experiments, one module each, and what runs them (`bags experiment NAME`)."""
