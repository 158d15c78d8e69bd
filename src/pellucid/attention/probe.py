"""Looking is a parameter: the one door for recording and for intervening."""

from __future__ import annotations

from typing import Protocol

from torch import Tensor

from pellucid.errors import InputError

__all__ = ["Probe", "is_watched", "show"]


class Probe(Protocol):
    """Something that is handed every intermediate result of a forward pass.

    ``site`` says where (``encoder.0.self``, ``decoder.1.cross``, ``decoder.1.feed_forward``,
    ``encoder``, ``decoder``), ``stage`` says what (``query``, ``key``, ``value``, ``scores``,
    ``scaled``, ``masked``, ``weights``, ``context``, ``output``, ``input``, ``residual``,
    ``norm``, ``inner``, ``activated``, ``embedding``, ``positions``, ``logits``).

    A probe may have an attribute ``sites``, a collection of sites: attention elsewhere is then
    computed the fast way, and only what its stages would show is missing.
    """

    def see(self, site: str, stage: str, tensor: Tensor) -> Tensor | None:
        """Take one result; return a tensor of the same shape to go on with instead, or None."""
        ...


def is_watched(probe: Probe, site: str) -> bool:
    """Whether a probe has to be shown every stage of attention at a site."""
    sites = getattr(probe, "sites", None)
    return sites is None or site in sites


def show(probe: Probe | None, site: str, stage: str, tensor: Tensor) -> Tensor:
    """Hand a result to the probe, if there is one, and return what to go on with.

    Raises:
        InputError: the probe returned a replacement of another shape.
    """
    if probe is None:
        return tensor
    replacement = probe.see(site, stage, tensor)
    if replacement is None:
        return tensor
    if replacement.shape != tensor.shape:
        raise InputError(
            f"A probe's replacement must have the shape {tuple(tensor.shape)}, but has "
            f"{tuple(replacement.shape)} ({site}.{stage}). Return None to leave it as it is."
        )
    return replacement
