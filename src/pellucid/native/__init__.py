"""Decoding in C: one call for a whole translation, search included, without PyTorch."""

from pellucid.native.engine import Ended, Limits, NativeEngine, Search
from pellucid.native.loading import find_library, instruction_sets
from pellucid.native.session import Encoded, Session
from pellucid.native.stored import read_stored
from pellucid.native.weights import find_obstacle

__all__ = [
    "Encoded",
    "Ended",
    "Limits",
    "NativeEngine",
    "Search",
    "Session",
    "find_library",
    "find_obstacle",
    "instruction_sets",
    "read_stored",
]
