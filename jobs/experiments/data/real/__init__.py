"""Real bags that come inside packages: recipes that read them, without a download."""
