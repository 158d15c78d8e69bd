"""Sentences of every shape that a reader may type, in which every word stands in every role."""

from pellucid.corpora.free.constructions import OPEN_CONSTRUCTIONS

__all__ = ["OPEN_CONSTRUCTIONS"]
