"""Sentences of every shape that a reader may type, in which every word stands in every role."""
