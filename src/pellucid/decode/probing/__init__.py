"""Searches under a probe, which changes a model on the way."""
