"""Clusters: started, connected to and checked, from a profile or at an address."""
