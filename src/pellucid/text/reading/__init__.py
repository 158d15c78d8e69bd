"""Readers of parallel text, line by line."""
