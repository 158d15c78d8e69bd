"""Restore saved tensors: all of them, or none."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from pellucid.errors import BundleError


def copy_saved(own: Mapping[str, Tensor], saved: Mapping[str, Tensor], *, of: str) -> None:
    """Copy saved tensors into those of the same names, on any device.

    Args:
        own: are written to.
        saved: from a checkpoint.
        of: names them in the message, such as ``optimizer``.

    Raises:
        BundleError: names, shapes or types differ; nothing was copied.
    """
    differing = own.keys() ^ saved.keys() or {
        name
        for name, tensor in own.items()
        if (tensor.shape, tensor.dtype) != (saved[name].shape, saved[name].dtype)
    }
    if differing:
        raise BundleError(
            f"A checkpoint's {of} must fit its run's model and recipe, but {min(differing)} does "
            "not. Continue with the recipe that the run began with."
        )
    for name, tensor in own.items():
        tensor.copy_(saved[name])
