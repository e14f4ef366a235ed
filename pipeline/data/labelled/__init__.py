"""Ranges of bags with labels: what something learns from, is judged on or leaves out."""
