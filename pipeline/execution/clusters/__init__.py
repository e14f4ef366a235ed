"""Starting, connecting to and checking clusters, from a profile or an address."""
