"""Config files and their keys, which are derived from the library's tables of parameters."""
