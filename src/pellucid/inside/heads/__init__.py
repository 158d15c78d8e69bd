"""Heads side by side: a table of figures, and the difference of two maps."""
