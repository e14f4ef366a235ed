"""Work on a cluster or in this process: lanes, passes over bags, merging, progress."""
