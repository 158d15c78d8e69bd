"""The run folder and everything written to it."""
