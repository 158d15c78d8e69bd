"""Measures of parts of the model instead of words: what a head, a layer or the embedding does."""
