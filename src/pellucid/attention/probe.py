"""The probe: an object passed to a forward pass to record its results or to change them."""

from __future__ import annotations

from typing import Any, Protocol

import torch
from torch import Tensor

from pellucid.errors import InputError

_MAY_FORBID = frozenset({"scores", "scaled", "masked", "logits"})
"""The stages in which −∞ forbids a key or a token."""


class Probe(Protocol):
    """An object that is handed every intermediate result of a forward pass.

    ``site`` is the place (``encoder.0.self``, ``decoder.1.cross``, ``decoder.1.feed_forward``,
    ``encoder``, ``decoder``). ``stage`` is the result (``query``, ``key``, ``value``, ``scores``,
    ``scaled``, ``masked``, ``weights``, ``context``, ``output``, ``input``, ``residual``,
    ``norm``, ``inner``, ``activated``, ``embedding``, ``positions``, ``logits``).

    A probe may have an attribute ``sites``, a collection of sites. Attention at any other site
    then takes the fast path and shows none of its stages; all other results are shown as usual.

    Results have the type of the forward pass: float64 in a replay (`Translator.look`), otherwise
    normally float32. A replacement is converted to that type, and moved to the result's device.
    To change a result return another tensor; leave the one that is handed out as it is.
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
        InputError: the replacement cannot stand there, see `fitted`.
    """
    replacement = None if probe is None else probe.see(site, stage, tensor)
    return tensor if replacement is None else fitted(replacement, tensor, site, stage)


def fitted(replacement: Any, result: Tensor, site: str, stage: str) -> Tensor:
    """Check a probe's replacement, and convert it to the type and the device of the result.

    Raises:
        InputError: it is no tensor of floating-point numbers, has another shape, or has numbers
            that are not finite. Scores and logits may be −∞.
    """
    is_tensor = isinstance(replacement, Tensor)
    is_dense = is_tensor and replacement.layout == torch.strided and not replacement.is_meta
    if not is_dense or not replacement.is_floating_point() or replacement.shape != result.shape:
        found = type(replacement).__name__
        if is_tensor:
            shape, device = tuple(replacement.shape), replacement.device
            found = f"{shape} of {replacement.dtype}, {replacement.layout}, on {device}"
        raise InputError(
            "A probe's replacement must be a dense tensor of floating-point numbers of the shape "
            f"{tuple(result.shape)}, but is {found} ({site}.{stage}). Return None to leave the "
            "result as it is."
        )
    fit: Tensor = replacement.to(result)
    is_allowed = fit.isfinite()
    if stage in _MAY_FORBID:
        is_allowed |= fit.isneginf()
    if not is_allowed.all():
        raise InputError(
            f"A probe's replacement must hold finite numbers, but does not ({site}.{stage}). "
            "Only scores and logits may be −∞."
        )
    return fit
