"""The probe: an object passed to a forward pass to record its results or to change them."""

from __future__ import annotations

from typing import Protocol

from torch import Tensor

from pellucid.errors import InputError


class Probe(Protocol):
    """An object that is handed every intermediate result of a forward pass.

    ``site`` is the place (``encoder.0.self``, ``decoder.1.cross``, ``decoder.1.feed_forward``,
    ``encoder``, ``decoder``). ``stage`` is the result (``query``, ``key``, ``value``, ``scores``,
    ``scaled``, ``masked``, ``weights``, ``context``, ``output``, ``input``, ``residual``,
    ``norm``, ``inner``, ``activated``, ``embedding``, ``positions``, ``logits``).

    A probe may have an attribute ``sites``, a collection of sites. Attention at any other site
    then takes the fast path and shows none of its stages; all other results are shown as usual.
    """

    def see(self, site: str, stage: str, tensor: Tensor) -> Tensor | None:
        """Take one result. Return a tensor of the same shape to replace it, or None."""
        ...


def is_watched(probe: Probe, site: str) -> bool:
    """True if a probe wants every stage of attention at a site."""
    sites = getattr(probe, "sites", None)
    return sites is None or site in sites


def show(probe: Probe | None, site: str, stage: str, tensor: Tensor) -> Tensor:
    """Hand a result to the probe, if any; return the result or the probe's replacement.

    Raises:
        InputError: the replacement has another shape.
    """
    replacement = None if probe is None else probe.see(site, stage, tensor)
    if replacement is None:
        return tensor
    if replacement.shape != tensor.shape:
        raise InputError(
            f"A probe's replacement must have the shape {tuple(tensor.shape)}, but has "
            f"{tuple(replacement.shape)} ({site}.{stage}). Return None to leave it as it is."
        )
    return replacement
