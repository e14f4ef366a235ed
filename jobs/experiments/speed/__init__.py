"""Experiments that measure time and memory, beside others' tools."""
