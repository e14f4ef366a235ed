"""Experiments that measure time and memory, compared with others' tools."""
