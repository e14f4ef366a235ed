"""Computing on a cluster or in this process: threads, passes over bags, merging, progress."""
