"""Kernels in C for what training spends its time on, and their place in Python."""

from pellucid.kernels.calls import AttentionCall, EmbeddingCall
from pellucid.kernels.kernels import BYTES_PER_CHUNK, WIDTH_STEP, Drawn, Kernels, Norm, find_kernels
from pellucid.kernels.loading import library_name

__all__ = [
    "BYTES_PER_CHUNK",
    "WIDTH_STEP",
    "AttentionCall",
    "Drawn",
    "EmbeddingCall",
    "Kernels",
    "Norm",
    "find_kernels",
    "library_name",
]
