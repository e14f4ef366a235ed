"""A fit as a value: a problem is posed and planned, its bags become sums, the sums are solved."""
