"""Kernels in C for the operations that training spends its time on, and their Python interface."""

from pellucid.native.kernels.calls import (
    AttentionCall,
    DropoutBytes,
    EmbeddingCall,
    address_of,
    mask_of,
)
from pellucid.native.kernels.kernels import BYTES_PER_CHUNK, WIDTH_STEP, Kernels, Norm, find_kernels
from pellucid.native.kernels.loading import library_name

__all__ = [
    "BYTES_PER_CHUNK",
    "WIDTH_STEP",
    "AttentionCall",
    "DropoutBytes",
    "EmbeddingCall",
    "Kernels",
    "Norm",
    "address_of",
    "find_kernels",
    "library_name",
    "mask_of",
]
