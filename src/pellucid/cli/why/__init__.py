"""The terminal's view of a measurement."""
